"""`compatcheck matrix search`."""

from __future__ import annotations

import sys

import click

from compatcheck.language import gettext as _
from compatcheck.results import exit_status
from compatcheck.verbs import _help
from compatcheck.verbs._output import screen_of, write

EXAMPLES = (
    "compatcheck matrix search deepspeed zero3 hang",
    'compatcheck matrix search "RuntimeError: expected scalar type"',
    "compatcheck matrix search 显存溢出",
)


@_help.verb()
@click.argument("words", nargs=-1, required=True)
def command(words: tuple[str, ...]) -> None:
    """Search the entries for words, a symptom or an error line, in English or Chinese.

    Exits with 1 if no entry matches.
    """
    from compatcheck import matrix, symptoms
    from compatcheck.report import render
    from compatcheck.report.subjects.explanation import document_of_list

    known = matrix.load()
    seen = {sighting.symptom for sighting in symptoms.read_words(" ".join(words), "")}
    found = matrix.search(known, words, seen)
    shown = [matrix.in_language(known, entry) for entry in found]
    write(render(document_of_list(shown), "text", screen_of(None)), None)
    if not found:
        click.echo(_("no entry matches; for a whole log, run compatcheck diagnose LOG"), err=True)
    sys.exit(exit_status.CLEAN if found else exit_status.FINDINGS)
