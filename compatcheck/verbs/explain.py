"""`compatcheck explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from compatcheck.language import gettext as _
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import screen_of, write, write_page

if TYPE_CHECKING:
    from compatcheck.matrix import Matrix
    from compatcheck.report.document import Document


SECTION = "understand"
EXAMPLES = (
    "compatcheck explain CC-2024-0001",
    "compatcheck explain attention_masked --no-pager",
)


@_help.verb()
@click.argument("name", metavar="ID|PROBE")
@_options.page_format
@_options.output
@_help.option("--no-pager", is_flag=True, help="Never use a pager.")
def command(name: str, format_name: str, output: str | None, no_pager: bool) -> None:
    """Show an entry or a probe in full.

    For an entry: what goes wrong, why, the evidence, the fix, and advice that misleads. For a probe: what it
    measures, its bound and what a failure means. A page longer than the terminal goes through $PAGER.
    """
    from compatcheck.report import render

    page = render(_page(name), format_name, screen_of(output))
    if output is None and not no_pager and format_name == "text":
        write_page(page)
    else:
        write(page, output)


def _page(name: str) -> Document:
    from compatcheck import matrix, probes
    from compatcheck.report.subjects import explanation

    if name in probes.names():
        return explanation.document_of_probe(name, probes.describe(name))
    known = matrix.load()
    _require_name(known, name)
    entry = matrix.find_entry(known, name)
    if "withdrawn" in entry:
        return explanation.document(entry)
    entry = matrix.in_language(known, entry)
    probe = (entry.get("probe") or {}).get("name")
    described = probes.describe(probe) if probe in probes.names() else ()
    reason = known.table("unprobed")["reasons"].get(entry.get("unprobed"))
    return explanation.document(entry, described, reason or "")


def _require_name(known: Matrix, name: str) -> None:
    """Raise InputError for a word that is no id; it names the probes spelled like it and the entries that hold it."""
    if name.upper().startswith("CC-"):
        return
    from compatcheck import matrix, probes
    from compatcheck.errors import InputError
    from compatcheck.language.suggestion import did_you_mean

    number = len(matrix.search(known, [name]))
    search = _("`compatcheck matrix search {word}` lists {number} entries about it").format(word=name, number=number)
    advice = did_you_mean(name, probes.names(), search if number else _("`compatcheck matrix search` finds entries"))
    raise InputError("looking up", name, "no entry or probe has this name", advice)
