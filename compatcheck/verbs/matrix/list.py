"""`compatcheck matrix list`."""

from __future__ import annotations

import click

from compatcheck.language import gettext as _
from compatcheck.verbs import _help
from compatcheck.verbs._output import screen_of, write

EXAMPLES = (
    "compatcheck matrix list",
    "compatcheck matrix list --package deepspeed",
)


@_help.verb()
@_help.option("--package", metavar="NAME", help="List only entries about this distribution.")
def command(package: str | None) -> None:
    """List the entries."""
    from compatcheck import matrix
    from compatcheck.language.suggestion import did_you_mean
    from compatcheck.report import render
    from compatcheck.report.subjects.explanation import document_of_list

    known = matrix.load()
    entries = [e for e in matrix.all_entries(known) if package in (None, *e["packages"])]
    shown = [matrix.in_language(known, entry) for entry in entries]
    write(render(document_of_list(shown), "text", screen_of(None)), None)
    if not entries and package is not None:
        packages = {name for entry in matrix.all_entries(known) for name in entry["packages"]}
        advice = did_you_mean(package, packages, _("see compatcheck matrix search"))
        click.echo(_("no entry is about {package}; {advice}").format(package=package, advice=advice), err=True)
