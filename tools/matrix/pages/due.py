"""What of the matrix is due for a new look: for a person, for scripts, and for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.report.document import Document
from compatcheck.terminal.lines import Line
from tools.matrix.values import Watched

_ROOM = 26
"""Cells before the text, unless the longest name needs more."""

_TITLES = {
    "range": marked("version ranges with a newer release"),
    "table": marked("tables that lack a release"),
    "cap": marked("remedies that contradict a newer release"),
}


def document(watched: Watched) -> Document:
    title = Line(_summary(watched), "bold yellow" if watched.due else "bold green")
    return Document(title, tuple(_lines(watched)), partial(_shape, watched), ((title,),))


def _shape(watched: Watched) -> Mapping[str, Any]:
    return {
        "address": watched.address,
        "asked": list(watched.asked),
        "due": [each._asdict() for each in watched.due],
        "unknown": dict(watched.unknown),
    }


def _lines(watched: Watched) -> Iterator[Line]:
    for kind, heading in _TITLES.items():
        found = [each for each in watched.due if each.kind == kind]
        if found:
            yield Line(_(heading), "bold")
        room = max([_ROOM, *(len(each.subject) + 4 for each in found)])
        for each in found:
            yield Line(_(each.why), "", f"  {each.subject}", "yellow", room)
    if watched.unknown:
        yield Line(_("unknown"), "bold")
    for name, why in watched.unknown.items():
        yield Line(f"{name}: {_(why)}", "", "", "", 2)


def _summary(watched: Watched) -> str:
    text = _("{packages} packages checked at {address}: {due} to review, {unknown} unknown")
    return text.format(
        packages=len(watched.asked), address=watched.address, due=len(watched.due), unknown=len(watched.unknown)
    )
