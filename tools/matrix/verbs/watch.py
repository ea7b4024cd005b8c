"""`compatcheck matrix watch`."""

from __future__ import annotations

import sys

import click

from compatcheck.language import gettext as _
from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import screen_of, write

EXAMPLES = (
    "compatcheck matrix watch",
    "compatcheck matrix watch matrix/ --package torch --package peft",
)


@_help.verb()
@click.argument("folder", required=False)
@_help.option("--package", "packages", multiple=True, metavar="NAME", help="Check only this package; repeatable.")
@_help.option(
    "--index-url",
    envvar=["UV_DEFAULT_INDEX", "UV_INDEX_URL"],
    metavar="URL",
    help="Package index. Default: $UV_DEFAULT_INDEX, then $UV_INDEX_URL, then PyPI.",
)
@_options.page_format
@_options.output
def command(
    folder: str | None, packages: tuple[str, ...], index_url: str | None, format_name: str, output: str | None
) -> None:
    """List the parts of a matrix FOLDER to review because of new package releases.

    Compares the matrix with the releases on a package index. Lists version ranges with a release newer than their last
    review, tables that lack a release, and remedies that contradict the requirements of a newer release. Exits with 1
    if something needs a review, and with 3 if the index gives no answer.
    """
    from compatcheck.errors import NothingInspectedError
    from compatcheck.report import render
    from tools.matrix import watch
    from tools.matrix.pages.due import document

    asked = watch.question(folder, packages)
    label = _("asking the index for {number} packages").format(number=len(asked.packages))
    with click.progressbar(length=len(asked.packages), label=label, file=sys.stderr) as bar:
        watched = watch.watch(asked, index_url or watch.PYPI, lambda package: bar.update(1))
    if asked.packages and not watched.asked:
        name, why = next(iter(watched.unknown.items()))
        raise NothingInspectedError(
            "asking", watched.address, f"no answer for any package; {name}: {why}", "try again later"
        )
    write(render(document(watched), format_name, screen_of(output)), output)
    sys.exit(exit_status.FINDINGS if watched.due else exit_status.CLEAN)
