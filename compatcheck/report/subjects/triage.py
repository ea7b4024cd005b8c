"""The facts that a bug report states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment
from compatcheck.language import gettext as _
from compatcheck.report.document import Document, rows
from compatcheck.terminal.cells import cells
from compatcheck.terminal.lines import Line

_WIDEST = 60


def document(environment: Environment) -> Document:
    """Where and when it was filed, each fact with its line, and what the report leaves open."""
    return rows(_lines(environment))._replace(shape=lambda: {"environment": environment.dump()})


def _lines(environment: Environment) -> Iterator[Line]:
    facts = [
        (path, _value(value), at.line if at else None)
        for path, value in environment.flat().items()
        if (at := environment.locations.get(path)) or path.startswith("report.")
    ]
    width = max((min(len(path), _WIDEST) for path, _, _ in facts), default=0)
    yield Line(_("Facts in the report"))
    for path, value, line in sorted(facts, key=lambda fact: (fact[2] or 0, fact[0])):
        place = _("line {number}").format(number=line) if line else ""
        yield _row(place, path, width, value)
    if environment.reasons:
        yield Line(_("Unclear"))
        for path, why in environment.reasons.items():
            yield _row("", path, width, why)
    yield Line()


def _row(place: str, path: str, width: int, value: str) -> Line:
    return Line(value, head=f"{' ' * (10 - cells(place))}{place}  {path:<{width}}  ")


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        if all("module" in each for each in value):
            return ", ".join(".".join(filter(None, (each["module"], each.get("name")))) for each in value)
        counted = Counter((str(each.get("name") or "GPU"), bool(each.get("uncounted"))) for each in value)
        return ", ".join(name if uncounted else f"{count} x {name}" for (name, uncounted), count in counted.items())
    return "absent" if value is None else str(value)
