"""Tables by release that miss one.

A table takes part that says whose releases its rows are, ``package = "torch"``, or up to which release it was read of
each package: ``[read]``, ``torch = ["1.12.0", "2.13.0"]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    of_rows = {table["package"] for table in tables.values() if "package" in table}
    return of_rows.union(*(table.get("read", ()) for table in tables.values()))


def due(tables: Mapping[str, Mapping[str, Any]], releases: Mapping[str, Sequence[Release]]) -> Iterator[Due]:
    """Each table below whose newest row there are releases without one, and each of rows that only seem to go on."""
    for name, table in sorted(tables.items()):
        yield from _unread(name, table.get("read", {}), releases)
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
            what = f"nobody looked since {table['reviewed']}" if rows.onward else f"its newest row is {last}"
            why = f"{what}; there is {table['package']} {shown}{more}"
            yield Due("table", name, table["package"], str(missing[-1].version), why)


def _unread(name: str, read: Mapping[str, Sequence[str]], releases: Mapping[str, Sequence[Release]]) -> Iterator[Due]:
    """Each package that has a minor release younger than the newest one that was read."""
    for package, (_, last) in sorted(read.items()):
        newer = [
            each.version for each in releases.get(package, ()) if each.version.release[:2] > Version(last).release[:2]
        ]
        if newer:
            yield Due("table", name, package, str(newer[-1]), f"was read up to {last}; there is {package} {newer[-1]}")


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
