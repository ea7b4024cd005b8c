"""Tables by release that miss one.

A table takes part that says whose releases its rows are, ``package = "torch"``; so does each of the tables of
interfaces, whose index lists the releases that were read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import InvalidVersion, Version

from tools.matrix.values import Due
from tools.matrix.watch._index import Release
from tools.matrix.watch._ranges import day

_MOST_NAMED = 6


class _Rows(NamedTuple):
    """The releases that a table has rows for; ``onward`` where each row holds until the next one."""

    releases: tuple[str, ...]
    onward: bool


def packages(tables: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {table["package"] for table in tables.values() if "package" in table}


def read_interfaces(folder: Path) -> dict[str, tuple[str, ...]]:
    """The releases of each package that the tables of interfaces below a matrix folder were read from, in order."""
    index = folder / "interfaces" / "index.json"
    listed = json.loads(index.read_text(encoding="utf-8"))["releases"] if index.is_file() else {}
    return {package: tuple(releases.split()) for package, releases in listed.items()}


def due(tables: Mapping[str, Mapping[str, Any]], releases: Mapping[str, Sequence[Release]]) -> Iterator[Due]:
    """Each table below whose newest row there are releases without one, and each of rows that only seem to go on."""
    for name, table in sorted(tables.items()):
        known = releases.get(table.get("package", ""))
        rows = _rows(table)
        if not known or not rows.releases:
            continue
        last = max(Version(each) for each in rows.releases)
        missing = [each for each in known if each.version > last and not _has(each.version, rows.releases)]
        if rows.onward:
            reviewed = day(table["reviewed"])
            missing = [each for each in missing if each.uploaded is None or each.uploaded > reviewed]
        if missing:
            shown = ", ".join(str(each.version) for each in missing[-_MOST_NAMED:])
            more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
            what = f"was last reviewed on {table['reviewed']}" if rows.onward else f"its newest row is {last}"
            why = f"{what}; there is {table['package']} {shown}{more}"
            yield Due("table", name, table["package"], str(missing[-1].version), why)


def due_interfaces(read: Mapping[str, Sequence[str]], releases: Mapping[str, Sequence[Release]]) -> Iterator[Due]:
    """Each package that has releases newer than the last one that was read."""
    for package, listed in sorted(read.items()):
        newer = [each.version for each in releases.get(package, ()) if each.version > Version(listed[-1])]
        if newer:
            why = f"was read up to {listed[-1]}; there is {package} {newer[-1]}"
            yield Due("table", f"interfaces/{package}", package, str(newer[-1]), why)


def _rows(table: Mapping[str, Any]) -> _Rows:
    """The releases that rows of its arrays name by the package's own name or ``from``, else the keys of its tables."""
    arrays = [part for part in table.values() if isinstance(part, list)]
    rows = [row for array in arrays for row in array if isinstance(row, Mapping)]
    named = [str(row[key]) for row in rows for key in (table.get("package"), "from") if key in row]
    if not rows:
        named = [key for part in table.values() if isinstance(part, Mapping) for key in part]
    return _Rows(tuple(each for each in named if _is_release(each)), any("from" in row for row in rows))


def _is_release(text: str) -> bool:
    try:
        return len(Version(text).release) >= 2
    except InvalidVersion:
        return False


def _has(version: Version, rows: Sequence[str]) -> bool:
    """Whether a row is the release's own or, by its minor release alone, that of the whole series."""
    parts = [Version(each).release for each in rows]
    return any(version.release[: len(each)] == each for each in parts)
