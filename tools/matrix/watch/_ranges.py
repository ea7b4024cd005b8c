"""Entries that speak of releases nobody had seen when they were reviewed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment.paths import distribution_of
from tools.matrix.values import Due
from tools.matrix.watch._index import Release

_BOUND = re.compile(r"\s*(>=|<=|==|>|<)\s*(\S+?)\s*$")


class _Upper(NamedTuple):
    """A package whose range has no upper end (``last`` is None), or one at the last release that was seen to fail."""

    package: str
    last: Version | None


def packages(entries: Iterable[Mapping[str, Any]]) -> set[str]:
    return {upper.package for entry in entries for table in entry["affected"] for upper in _uppers(table)}


def due(entries: Iterable[Mapping[str, Any]], releases: Mapping[str, Sequence[Release]]) -> Iterator[Due]:
    """The entries whose range reaches, or stops short of, a release that is younger than their review."""
    for entry in entries:
        reviewed = day(entry["reviewed"])
        uppers = {upper for table in entry["affected"] for upper in _uppers(table)}
        for upper in sorted(uppers, key=lambda each: (each.package, each.last or Version("0"))):
            known = releases.get(upper.package)
            later = [each for each in known or () if upper.last is None or each.version > upper.last]
            if not later or not _younger(later[-1] if upper.last is None else later[0], reviewed, entry, upper.package):
                continue
            end = "is open to newer releases" if upper.last is None else f"ends at {upper.last}, the last one seen"
            since = f" of {later[-1].uploaded}" if later[-1].uploaded else ""
            why = f"{end}; {upper.package} {later[-1].version}{since} was released after its review on {reviewed}"
            yield Due("range", entry["id"], upper.package, str(later[-1].version), why)


def _younger(release: Release, reviewed: date, entry: Mapping[str, Any], package: str) -> bool:
    """Whether the release came after the review; where its day is unknown, whether the entry names none as new."""
    if release.uploaded is not None:
        return release.uploaded > reviewed
    return all(release.version > version for version in _named(entry, package))


def _named(entry: Mapping[str, Any], package: str) -> Iterator[Version]:
    texts = [table.get(f"distributions.{package}", "") for table in entry["affected"]]
    texts += [remedy.get("pins", {}).get(package, "") for remedy in entry["remedies"]]
    for text in texts:
        for version in re.findall(r"\d[\w.]*", str(text).partition("+")[0]):
            yield Version(version)


def _uppers(table: Mapping[str, Any]) -> Iterator[_Upper]:
    """Where a table ends: one with an end that is known, by a fix or by another package, ends there for good."""
    ranges = {name: _bounds(each) for path, each in table.items() if (name := distribution_of(path))}
    if any(op == "<" for bounds in ranges.values() for op, _ in bounds):
        return
    ended = {name: version for name, bounds in ranges.items() for op, version in bounds if op in ("<=", "==")}
    if ended:
        yield from (_Upper(name, version) for name, version in ended.items()) if len(ended) == 1 else ()
        return
    yield from (_Upper(name, None) for name, bounds in ranges.items() if bounds)


def _bounds(condition: str) -> list[tuple[str, Version]]:
    found = (_BOUND.match(part) for part in condition.split(","))
    return [(match[1], Version(match[2])) for match in found if match]


def day(given: Any) -> date:
    """A date as TOML or JSON has it."""
    return given if isinstance(given, date) else date.fromisoformat(given)
