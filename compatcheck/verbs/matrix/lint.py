"""`compatcheck matrix lint`."""

from __future__ import annotations

import sys

import click

from compatcheck.results import exit_status

EXAMPLES = (
    "compatcheck matrix lint",
    "compatcheck matrix lint matrix/",
)


@click.command()
@click.argument("folder", required=False)
@click.option("--only", metavar="ID", multiple=True, help="Prove this entry alone; may be given several times.")
def command(folder: str | None, only: tuple[str, ...]) -> None:
    """Prove every entry of a matrix FOLDER by its own examples."""
    from compatcheck import matrix, probes

    faults, entries = matrix.lint_folder(folder, probes.names(), only)
    for fault in faults:
        click.echo(f"{fault.id}: {'stale: ' if fault.stale else ''}{fault.text}")
    errors = sum(not fault.stale for fault in faults)
    click.echo(f"{entries} entries, {errors} faults", err=True)
    sys.exit(exit_status.FINDINGS if errors else exit_status.CLEAN)
