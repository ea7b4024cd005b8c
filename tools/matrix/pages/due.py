"""What of the matrix is due for a new look: for a person, for scripts, and for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from compatcheck.report.document import Document
from compatcheck.terminal.lines import Line
from tools.matrix.values import Watched

_TITLES = {
    "range": "ranges that newer releases fall into, or just beyond",
    "table": "tables that miss a release",
    "cap": "advice that newer metadata forbids",
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
            yield Line(heading, "bold")
        for each in found:
            yield Line(each.why, "", f"  {each.subject}", "yellow", 26)
    if watched.unknown:
        yield Line("not known", "bold")
    for name, why in watched.unknown.items():
        yield Line(f"{name}: {why}", "", "", "", 2)


def _summary(watched: Watched) -> str:
    counts = [f"{len(watched.due)} to look at again" if watched.due else "nothing is due"]
    if watched.unknown:
        counts.append(f"{len(watched.unknown)} not known")
    text = "{packages} packages asked for at {address}: {counts}"
    return text.format(packages=len(watched.asked), address=watched.address, counts=", ".join(counts))
