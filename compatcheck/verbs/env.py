"""`compatcheck env`."""

from __future__ import annotations

import click

from compatcheck.pipelines.environment import Request
from compatcheck.pipelines.environment import environment as environment_of
from compatcheck.verbs import _options
from compatcheck.verbs._output import write

EXAMPLES = (
    "compatcheck env -o node.json",
    "compatcheck env train.yaml --python .venv",
)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_options.python
@_options.assume
@_options.output
@_options.imports
@click.option("--hash-weights", is_flag=True, help="Also hash the weight files of a model folder.")
def command(
    paths: tuple[str, ...],
    python: str | None,
    assume: tuple[str, ...],
    output: str | None,
    imports: bool | None,
    hash_weights: bool,
) -> None:
    """Print every fact that `check` would judge, as JSON. `check --snapshot` reads it back."""
    import json

    from compatcheck import matrix

    request = Request(python, None, assume, hash_weights, imports)
    subject = environment_of(matrix.load(), paths, request)
    for remark in subject.remarks:
        click.echo(f"compatcheck: {remark}", err=True)
    write(json.dumps(subject.environment.dump(), indent=2, ensure_ascii=False) + "\n", output)
