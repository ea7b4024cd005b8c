"""`compatcheck matrix list`."""

from __future__ import annotations

import click


@click.command()
@click.option("--package", metavar="NAME", help="Only entries about this distribution.")
def command(package: str | None) -> None:
    """List the entries."""
    from compatcheck import matrix
    from compatcheck.report import explanation

    entries = [e for e in matrix.all_entries(matrix.load()) if package in (None, *e["packages"])]
    click.echo(explanation.render_list(entries), nl=False)
    if not entries:
        click.echo(f"no entry is about {package}", err=True)
