"""The facts that a bug report states, each with its line, and what it leaves unclear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment
from compatcheck.language import gettext as _
from compatcheck.terminal.cells import cells

_WIDEST = 60


def render(environment: Environment) -> str:
    """The facts in the order of their lines, where and when the report was filed, and what is unclear, as text."""
    return "".join(f"{line}\n" for line in _lines(environment))


def _lines(environment: Environment) -> Iterator[str]:
    rows = [
        (path, _spelled(value), at.line if at else None)
        for path, value in environment.flat().items()
        if (at := environment.locations.get(path)) or path.startswith("report.")
    ]
    width = max((min(len(path), _WIDEST) for path, _, _ in rows), default=0)
    yield _("the report states")
    for path, value, line in sorted(rows, key=lambda row: (row[2] or 0, row[0])):
        place = _("line {number}").format(number=line) if line else ""
        yield f"{' ' * (10 - cells(place))}{place}  {path:<{width}}  {value}"
    if environment.reasons:
        yield _("and leaves open")
        for path, why in environment.reasons.items():
            yield f"{'':10}  {path:<{width}}  {why}"
    yield ""


def _spelled(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        if all("module" in each for each in value):
            return ", ".join(".".join(filter(None, (each["module"], each.get("name")))) for each in value)
        counted = Counter((str(each.get("name") or "GPU"), bool(each.get("uncounted"))) for each in value)
        return ", ".join(name if uncounted else f"{count} x {name}" for (name, uncounted), count in counted.items())
    return "absent" if value is None else str(value)
