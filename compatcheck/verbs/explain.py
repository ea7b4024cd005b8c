"""`compatcheck explain`."""

from __future__ import annotations

import click

from compatcheck.verbs import _options
from compatcheck.verbs._output import write


@click.command()
@click.argument("entry_id", metavar="ID")
@_options.output
def command(entry_id: str, output: str | None) -> None:
    """Show one entry as a page. What goes wrong, why, the evidence, the way out, the advice that misleads."""
    from compatcheck import matrix, probes
    from compatcheck.report import explanation

    entry = matrix.find_entry(matrix.load(), entry_id)
    described = probes.describe(entry["probe"]["name"]) if entry.get("probe") else ()
    write(explanation.render(entry, described), output)
