"""From a finding to the demands that would clear it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from packaging.version import Version

from compatcheck.advice.model import Demands
from compatcheck.advice.search._cost import GONE, above, below, intersect, public_version, satisfies, specifiers
from compatcheck.packages.names import normalised
from compatcheck.results.findings import Finding

_COMPARATOR = re.compile(r"\s*(>=|<=|==|>|<)\s*([^\s,*]+)\s*$")


def ways(finding: Finding, versions: Mapping[str, str]) -> tuple[Demands, ...]:
    """The demands of which each may clear the finding, those its remedies advise first; none: versions cannot.

    Behind the advised ones stands the complement of the versions that the finding speaks of, so that whoever follows
    every way misses no set of versions that clears it. That of one table is enough, as another that holds as well
    comes back with the next solution. Nothing that is there is taken away to clear a finding.
    """
    advised = [pins for pins in _advised(finding, versions) if not satisfies(pins, versions)]
    rest = [pins for way in _complement(finding, versions) for pins in _unadvised(way, advised)]
    distinct: dict[frozenset[tuple[str, object]], Demands] = {}
    for pins in (*advised, *rest):
        distinct.setdefault(frozenset((name, specifiers(text)) for name, text in pins.items()), Demands(dict(pins)))
    return tuple(distinct.values())


def _advised(finding: Finding, versions: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """A remedy that limits a distribution which is not there is meant for another environment."""
    for remedy in finding.remedies:
        pins = {normalised(name): text for name, text in remedy.pins.items()}
        if pins and all(name in versions or not text for name, text in pins.items()):
            yield pins


def _complement(finding: Finding, versions: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    if finding.ranges and all(map(_limits, finding.ranges)):
        for name, text in finding.ranges[0].items():
            if name in versions:
                yield from ({name: specifier} for specifier in _outside(text))
        return
    present = [name for name in map(normalised, finding.packages) if public_version(versions.get(name, ""))]
    if len(present) > 1:
        # A relation between these, such as a wheel built for another torch. A fault of the model or of the machine
        # names one at most, and would outlive all its releases.
        for name in present:
            yield from ({name: specifier} for specifier in _outside(f"=={versions[name].partition('+')[0]}"))


def _unadvised(way: Mapping[str, str], advised: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """What of a way no advised one holds, so that no set of versions is looked for twice."""
    (name,) = way
    left = [way[name]]
    for pins in advised:
        matches = [_COMPARATOR.match(clause) for clause in pins.get(name, "").split(",")]
        if len(pins) == 1 and all(match and match[1] != ">" for match in matches):
            outside = list(_outside(pins[name]))
            left = [text for part in left for side in outside if (text := intersect(part, side)) != GONE]
    return [{name: text} for text in left]


def _limits(ranges: Mapping[str, str]) -> bool:
    """Whether a table of an entry speaks of versions at all; one that does not outlives them all."""
    return any(_COMPARATOR.match(part) for text in ranges.values() for part in text.split(","))


def _outside(text: str) -> Iterator[str]:
    """The specifiers that together hold what the range of an entry does not, the newer side first."""
    matches = filter(None, map(_COMPARATOR.match, text.split(",")))
    sides = [side for match in matches for side in _outside_comparison(match[1], Version(match[2]))]
    yield from sorted(sides, key=lambda side: side.startswith("<"))


def _outside_comparison(operator: str, bound: Version) -> Iterator[str]:
    """What one comparison of an entry leaves out. There a post-release is above its release, as `above` has it."""
    if operator in ("<=", "=="):
        yield above(bound)
    if operator in (">=", "=="):
        yield below(bound)
    if operator == "<":
        yield f">={bound.base_version if bound.is_prerelease else bound}"
    if operator == ">":
        yield f"<{bound.base_version}" if bound.is_prerelease else f"<={bound}"
