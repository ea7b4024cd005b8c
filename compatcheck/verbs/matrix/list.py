"""`compatcheck matrix list`."""

from __future__ import annotations

import click


@click.command()
@click.option("--package", metavar="NAME", help="Only entries about this distribution.")
def command(package: str | None) -> None:
    """List the entries."""
    from compatcheck import matrix
    from compatcheck.report import explanation

    entries = matrix.all_entries(matrix.load())
    click.echo(explanation.render_list(e for e in entries if package in (None, *e["packages"])), nl=False)
