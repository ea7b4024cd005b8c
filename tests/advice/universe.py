"""Small indexes, a resolver for them that behaves as uv does, and every set of versions that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck.advice.model import Demands, Solution, Unsolvable, Violation
from compatcheck.advice.search import ways
from compatcheck.packages.versions import contains, parse_range, parse_version
from compatcheck.results.findings import Finding, Remedy

Releases = Mapping[str, Mapping[str, str]]
"""The requirements of each version: its dependencies' specifiers by name."""


class Entry(NamedTuple):
    """A known-bad combination; ``tables`` are alternatives of ranges by name. A setting clears it if ``settable``."""

    id: str
    tables: tuple[Mapping[str, str], ...]
    pins: tuple[Mapping[str, str], ...] = ()
    settable: bool = False


class Universe(NamedTuple):
    packages: Mapping[str, Releases]
    wanted: Mapping[str, str]
    preferred: Mapping[str, str] = {}
    entries: tuple[Entry, ...] = ()


def violations(universe: Universe) -> Callable[[Solution, Demands], list[Violation]]:
    """The judge of a universe: the entries that a solution is at fault under, with the ways to clear them."""

    def judge(solution: Solution, demands: Demands) -> list[Violation]:
        found = []
        for entry in universe.entries:
            fault = finding(entry, solution.versions)
            if fault.ranges and entry.id not in demands.by_hand:
                by_hand = (Demands(by_hand=(entry.id,)),) if entry.settable else ()
                found.append(Violation(entry.id, fault.title, ways(fault, solution.versions) + by_hand))
        return found

    return judge


def finding(entry: Entry, versions: Mapping[str, str]) -> Finding:
    """What the matrix says of these versions; without ``ranges`` the entry does not hold."""
    remedies = tuple(Remedy("pins", "", pins) for pins in entry.pins)
    holding = tuple(table for table in entry.tables if _holds(table, versions))
    names = tuple(dict.fromkeys(name for table in holding for name in table))
    return Finding(entry.id, "t", "affected", "hang", "reported", names, "s", (), remedies, (), ranges=holding)


def _holds(table: Mapping[str, str], versions: Mapping[str, str]) -> bool:
    return all(name in versions and _in_range(text, versions[name]) for name, text in table.items())


def _in_range(text: str, version: str) -> bool:
    parsed = parse_version(version)
    return parsed is not None and contains(parse_range(text), parsed)


class Resolver:
    """Decides one distribution after the other and goes back where it must; counts what it is asked.

    Like uv it takes exact demands first, then what was met first; a preferred version where the limits known so far
    allow it, else the newest. So what it finds is not the nearest.
    """

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self.asked: list[Demands] = []

    def __call__(self, demands: Demands) -> Solution:
        self.asked.append(demands)
        for versions in solutions(self.universe, demands):
            return Solution(versions, _parents(self.universe, versions))
        fault = _core(self.universe, demands).specifiers
        raise Unsolvable("resolving", "the requirements", f"nothing satisfies {fault}", "loosen them")


def _core(universe: Universe, demands: Demands) -> Demands:
    """The demands without those that the refusal does not need, as uv names what is at fault alone."""
    for name in demands.specifiers:
        rest = {other: limit for other, limit in demands.specifiers.items() if other != name}
        fewer = demands._replace(specifiers=rest)
        if next(solutions(universe, fewer), None) is None:
            return _core(universe, fewer)
    return demands


def solutions(universe: Universe, demands: Demands | None = None) -> Iterator[dict[str, str]]:
    """Every set of versions that satisfies the requirements and holds nothing unasked for, in the resolver's order."""
    limits = demands.specifiers if demands else {}
    asked = {**universe.wanted, **{name: "" for name, limit in limits.items() if not limit}}
    yield from _decided(universe, limits, asked, {})


def _decided(
    universe: Universe, limits: Mapping[str, str], asked: Mapping[str, str], versions: dict[str, str]
) -> Iterator[dict[str, str]]:
    needs: dict[str, list[str]] = {name: [specifier] for name, specifier in asked.items()}
    for name, version in versions.items():
        for needed, specifier in universe.packages[name][version].items():
            needs.setdefault(needed, []).append(specifier)
    allowed = {name: SpecifierSet(",".join(filter(None, (*needs[name], limits.get(name, ""))))) for name in needs}
    if not all(_admitted(allowed[name], version) for name, version in versions.items()):
        return
    undecided = [name for name in needs if name not in versions]
    if not undecided:
        yield versions
        return
    name = min(undecided, key=lambda name: not any(s.operator == "==" and "*" not in s.version for s in allowed[name]))
    for version in _in_order(universe, name):
        if _admitted(allowed[name], version):
            yield from _decided(universe, limits, asked, {**versions, name: version})


def _in_order(universe: Universe, name: str) -> list[str]:
    newest_first = sorted(universe.packages.get(name, ()), key=Version, reverse=True)
    preferred = universe.preferred.get(name, "").partition("+")[0]
    return sorted(newest_first, key=lambda version: version.partition("+")[0] != preferred)


def _admitted(allowed: SpecifierSet, version: str) -> bool:
    return allowed.contains(version, prereleases=False)


def _parents(universe: Universe, versions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(parent for parent, version in versions.items() if name in universe.packages[parent][version])
        for name in versions
    }
