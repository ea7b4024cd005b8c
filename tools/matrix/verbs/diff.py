"""`compatcheck matrix diff`."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

import click

from compatcheck.language import gettext as _
from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import screen_of, write

EXAMPLES = (
    "compatcheck matrix diff --base main",
    "compatcheck matrix diff old/matrix new/matrix --format markdown",
)


@_help.verb()
@click.argument("folders", nargs=-1, metavar="[OLD] [NEW]")
@_help.option("--base", metavar="REVISION", help="Read OLD from this git revision.")
@_help.option(
    "--environments",
    multiple=True,
    metavar="FILE|FOLDER",
    help="Snapshots to check: .json (one) or .jsonl (one per line). Default: NEW/environments.",
)
@_options.page_format
@_options.output
def command(
    folders: tuple[str, ...], base: str | None, environments: tuple[str, ...], format_name: str, output: str | None
) -> None:
    """Compare two versions of the matrix on environments that are known to work.

    OLD and NEW are folders of matrix sources. NEW defaults to the folder of this checkout. `+` marks a new verdict, `-`
    a verdict that is gone, `~` a verdict that changed. Exits with 1 if a known-good environment becomes affected.
    """
    from compatcheck import matrix
    from compatcheck.report import render
    from tools.matrix import diff
    from tools.matrix.pages.changes import document

    named = folders if base is None else ("", *folders)
    if not 1 <= len(named) <= 2:
        raise click.UsageError(_("give OLD and NEW, only OLD, or --base REVISION"))
    new = matrix.source_folder(named[1] if len(named) == 2 else None)
    recorded = diff.read_environments(environments or [os.path.join(new, diff.KNOWN_GOOD)])
    with ExitStack() as stack:
        old = stack.enter_context(diff.at_revision(new, base)) if base else named[0]
        comparison = diff.compare(matrix.load(old), matrix.load(new), recorded)
    write(render(document(comparison), format_name, screen_of(output)), output)
    sys.exit(exit_status.FINDINGS if comparison.alarms else exit_status.CLEAN)
