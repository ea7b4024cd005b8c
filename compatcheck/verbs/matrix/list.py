"""`compatcheck matrix list`."""

from __future__ import annotations

import click

from compatcheck.verbs._output import screen_of, write

EXAMPLES = (
    "compatcheck matrix list",
    "compatcheck matrix list --package deepspeed",
)


@click.command()
@click.option("--package", metavar="NAME", help="List only entries about this distribution.")
def command(package: str | None) -> None:
    """List the entries."""
    from compatcheck import matrix
    from compatcheck.report import render
    from compatcheck.report.subjects.explanation import document_of_list

    known = matrix.load()
    entries = [e for e in matrix.all_entries(known) if package in (None, *e["packages"])]
    shown = [matrix.in_language(known, entry) for entry in entries]
    write(render(document_of_list(shown), "text", screen_of(None)), None)
    if not entries:
        click.echo(f"no entry is about {package}", err=True)
