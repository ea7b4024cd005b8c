"""`compatcheck env`."""

from __future__ import annotations

import click

from compatcheck.files.json_text import written_json
from compatcheck.files.secrets import without_homes
from compatcheck.pipelines.environment import Request
from compatcheck.pipelines.environment import environment as environment_of
from compatcheck.terminal.messages import say
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import write

SECTION = "fleet"
EXAMPLES = (
    "compatcheck env -o node.json",
    "compatcheck env train.yaml --python .venv",
)


@_help.verb()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_options.python
@_options.assume
@_options.config("PATH")
@_options.output
@_options.imports
@_options.hash_weights
@_help.option("--share/--no-share", default=None, help="Write ~ for home folders. Default: yes with -o, otherwise no.")
def command(
    paths: tuple[str, ...],
    python: str | None,
    assume: tuple[str, ...],
    configs: tuple[str, ...],
    output: str | None,
    imports: bool | None,
    hash_weights: bool,
    share: bool | None,
) -> None:
    """Print every fact that `check` would judge, as JSON.

    `check --snapshot` reads it back, on any machine.
    """

    from compatcheck import matrix

    request = Request(python, None, assume, hash_weights, imports)
    subject = environment_of(matrix.load(), (*paths, *configs), request)
    for remark in subject.remarks:
        say(str(remark))
    text = written_json(subject.environment.dump())
    shared = output is not None if share is None else share
    write(without_homes(text) if shared else text, output)
