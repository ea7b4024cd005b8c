"""`compatcheck matrix watch`."""

from __future__ import annotations

import sys

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import screen_of, write

EXAMPLES = (
    "compatcheck matrix watch",
    "compatcheck matrix watch matrix/ --package torch --package peft",
)


@_help.verb()
@click.argument("folder", required=False)
@_help.option("--package", "packages", multiple=True, metavar="NAME", help="Only what hangs on these packages.")
@_help.option(
    "--index-url",
    envvar=["UV_DEFAULT_INDEX", "UV_INDEX_URL"],
    metavar="URL",
    help="The index to ask; else that of uv's environment variables, else PyPI.",
)
@_options.page_format
@_options.output
def command(
    folder: str | None, packages: tuple[str, ...], index_url: str | None, format_name: str, output: str | None
) -> None:
    """List what newer releases require to be reviewed in a matrix FOLDER.

    These are entries whose range reaches past their review, tables that miss a release, and advice that newer metadata
    forbids. Exit status 1 where something is due, 3 where the index could be asked for nothing.
    """
    from compatcheck.errors import NothingInspectedError
    from compatcheck.report import render
    from tools.matrix import watch
    from tools.matrix.pages.due import document

    asked = watch.question(folder, packages)
    label = f"asking the index for {len(asked.packages)} packages"
    with click.progressbar(length=len(asked.packages), label=label, file=sys.stderr) as bar:
        watched = watch.watch(asked, index_url or watch.PYPI, lambda package: bar.update(1))
    if asked.packages and not watched.asked:
        name, why = next(iter(watched.unknown.items()))
        raise NothingInspectedError(
            "asking", watched.address, f"nothing was answered; of {name}, {why}", "try again later"
        )
    write(render(document(watched), format_name, screen_of(output)), output)
    sys.exit(exit_status.FINDINGS if watched.due else exit_status.CLEAN)
