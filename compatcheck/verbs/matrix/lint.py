"""`compatcheck matrix lint`."""

from __future__ import annotations

import sys

import click

from compatcheck.language import gettext as _
from compatcheck.results import exit_status
from compatcheck.verbs import _help

EXAMPLES = (
    "compatcheck matrix lint",
    "compatcheck matrix lint matrix/",
)


@_help.verb()
@click.argument("folder", required=False)
@_help.option(
    "--select", "only", metavar="ID", multiple=True, help="Check only this entry; repeatable.", aliases=("--only",)
)
def command(folder: str | None, only: tuple[str, ...]) -> None:
    """Check every entry of a matrix FOLDER against its own examples."""
    from compatcheck import matrix, probes

    faults, entries = matrix.lint_folder(folder, probes.names(), only)
    for fault in faults:
        click.echo(f"{fault.id}: {_('stale: ') if fault.stale else ''}{_(fault.text)}")
    errors = sum(not fault.stale for fault in faults)
    click.echo(_("{entries} entries, {errors} faults").format(entries=entries, errors=errors), err=True)
    sys.exit(exit_status.FINDINGS if errors else exit_status.CLEAN)
