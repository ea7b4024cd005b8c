"""What became of entries that were reproduced in built environments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compatcheck.report.json import SCHEMA_VERSION, finite
from compatcheck.terminal.lines import Line, written
from compatcheck.terminal.screen import PLAIN, Screen

_STYLES = {"reproduced": "green", "not reproduced": "bold red", "not tried": "yellow"}

Record = Mapping[str, Any]


def render(records: Sequence[Record], format_name: str, screen: Screen = PLAIN) -> str:
    """The verdict of each entry, and below it what differed between its environments and what the probe said there."""
    if format_name == "json":
        return _json({"schema_version": SCHEMA_VERSION, "reproductions": list(records)})
    return written([line for record in records for line in _lines(record)], screen)


def render_record(record: Record) -> str:
    """One record as the file that an entry cites as evidence."""
    return _json(record)


def _json(shape: Mapping[str, Any]) -> str:
    return json.dumps(finite(shape), indent=2, ensure_ascii=False) + "\n"


def _lines(record: Record) -> Iterator[Line]:
    verdict = record["verdict"]
    yield Line(f"{record['entry']}  {record['title']}", "", verdict, _STYLES[verdict], 16)
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
    return ", ".join(differing) or "the same versions"
