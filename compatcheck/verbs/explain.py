"""`compatcheck explain`."""

from __future__ import annotations

import click

from compatcheck.verbs import _options
from compatcheck.verbs._output import write


@click.command()
@click.argument("name", metavar="ID|PROBE")
@_options.output
def command(name: str, output: str | None) -> None:
    """Show one entry or probe as a page.

    Of an entry what goes wrong, why, the evidence, the way out, the advice that misleads; of a probe what it measures,
    its bound and what a failure means.
    """
    from compatcheck import matrix, probes
    from compatcheck.report import explanation

    if name in probes.names():
        write(explanation.render_probe(name, probes.describe(name)), output)
        return
    known = matrix.load()
    entry = matrix.in_language(known, matrix.find_entry(known, name))
    probe = (entry.get("probe") or {}).get("name")
    described = probes.describe(probe) if probe in probes.names() else ()
    write(explanation.render(entry, described), output)
