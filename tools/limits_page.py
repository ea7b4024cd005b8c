"""Write docs/reference/limits.md from the limits: ``python -m tools.limits_page``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from compatcheck.files import limits

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "limits.md"
SOURCE = Path(limits.__file__)
_HEAD = """# Limits on input

compatcheck reads untrusted input, so each size, depth and time has a limit. Refused input gives one line on standard
error and exit status 2; skipped or omitted input is unknown, with the reason. The names are those in
`compatcheck/files/limits.py`.

`python -m tools.limits_page` generates this page."""
_UNITS = {"BYTES": "", "SECONDS": " s", "CHARACTERS": " characters", "DEPTH": " levels"}


class Limit(NamedTuple):
    """One limit: the heading it stands under, its name, its value, what it bounds and what happens beyond it."""

    heading: str
    name: str
    value: float
    bounds: str
    beyond: str


def read() -> Iterator[Limit]:
    """The limits in their order. Raises ValueError for one without a meaning."""
    source = SOURCE.read_text(encoding="utf-8")
    lines = source.splitlines()
    body = ast.parse(source).body
    for node, after in zip(body, [*body[1:], None]):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        told = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if not isinstance(told, str):
            raise ValueError(f"{name} has no meaning")
        bounds, _, beyond = " ".join(told.split()).partition(". ")
        heading = next(line[2:] for line in reversed(lines[: node.lineno]) if line.startswith("# "))
        yield Limit(heading, name, getattr(limits, name), bounds, beyond)


def page() -> str:
    """The page as Markdown."""
    parts, last = [_HEAD], ""
    for each in read():
        if each.heading != last:
            last = each.heading
            parts.append(f"\n## {last}\n\n| limit | of | beyond it | name |\n| --- | --- | --- | --- |")
        parts.append(f"| {_amount(each)} | {each.bounds} | {each.beyond.rstrip('.')} | `{each.name}` |")
    return "\n".join(parts) + "\n"


def _amount(limit: Limit) -> str:
    unit = limit.name.rpartition("_")[2]
    if unit == "BYTES":
        for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if limit.value % size == 0:
                return f"{int(limit.value) // size} {name}"
        return f"{limit.value} bytes"
    return f"{limit.value:,.0f}{_UNITS.get(unit, '')}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
