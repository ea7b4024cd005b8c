"""Newer metadata that forbids what a remedy advises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from compatcheck.environment.paths import distribution_of
from compatcheck.packages.names import normalised
from tools.matrix.values import Due
from tools.matrix.watch._index import Release


class Pair(NamedTuple):
    """A remedy that moves ``pinned`` and leaves ``holder``, another package of the entry, as it is."""

    entry: str
    holder: str
    pinned: str
    specifier: str


def wanted(entries: Iterable[Mapping[str, Any]]) -> list[Pair]:
    """Whose newest metadata to hold against which advice."""
    return [
        Pair(entry["id"], holder, pinned, specifier)
        for entry in entries
        for remedy in entry["remedies"]
        for pinned, specifier in remedy.get("pins", {}).items()
        for holder in sorted(set(filter(None, map(distribution_of, chain(*entry["affected"])))))
        if holder not in remedy["pins"]
    ]


def packages(entries: Iterable[Mapping[str, Any]]) -> set[str]:
    return {name for pair in wanted(entries) for name in (pair.holder, pair.pinned)}


def due(
    pairs: Iterable[Pair], demands: Mapping[str, Sequence[str]], releases: Mapping[str, Sequence[Release]]
) -> Iterator[Due]:
    """The advice of which no release is left that the newest release of the other package accepts."""
    for pair in dict.fromkeys(pairs):
        asked = _asked(demands.get(pair.holder, ()), pair.pinned)
        advised = SpecifierSet(pair.specifier)
        versions = [each.version for each in releases[pair.pinned] if advised.contains(each.version)]
        if asked is None or not versions or any(asked.contains(version) for version in versions):
            continue
        newest = str(releases[pair.holder][-1].version)
        why = f"advises {pair.pinned}{pair.specifier}, and {pair.holder} {newest} requires {pair.pinned}{asked}"
        yield Due("cap", pair.entry, pair.holder, newest, why)


def _asked(requirements: Iterable[str], package: str) -> SpecifierSet | None:
    """What requirements without a condition, extras being one, ask of a package; None where they do not name it."""
    found: SpecifierSet | None = None
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is None and normalised(requirement.name) == package:
            found = requirement.specifier if found is None else found & requirement.specifier
    return found
