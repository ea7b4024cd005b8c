"""What became of entries that were reproduced in built environments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compatcheck.language import comma_list
from compatcheck.language import gettext as _
from compatcheck.report.document import STYLES, Document
from compatcheck.terminal.lines import Line

Record = Mapping[str, Any]


def document(records: Sequence[Record]) -> Document:
    """The verdict of each entry, what differed between its environments, and what the probe showed there."""
    lines = tuple(line for record in records for line in _lines(record))
    return Document(Line(), lines, lambda: {"reproductions": list(records)})


def _lines(record: Record) -> Iterator[Line]:
    verdict = record["verdict"]
    yield Line(f"{record['entry']}  {record['title']}", "", verdict, STYLES[verdict], 16)
    sides = {kind: record[kind] for kind in ("bad", "good") if record[kind]}
    for kind, side in sides.items():
        probe = side["probe"]
        yield Line(
            f"{_own(side, sides.values())}: {probe['name']} {probe['outcome']}, {probe['why']}", "", kind, "", 16
        )
    if verdict != "reproduced":
        yield Line(record["why"], "", "why", "", 16)


def _own(side: Record, sides: Any) -> str:
    """The versions in which an environment differs from the other; all that are named where there is no other."""
    others = [other["distributions"] for other in sides if other is not side]
    mine = side["distributions"].items()
    differing = [f"{name} {version}" for name, version in mine if all(other.get(name) != version for other in others)]
    return comma_list(differing) or _("the same versions")
