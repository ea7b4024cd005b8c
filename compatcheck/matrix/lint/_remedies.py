"""Remedies: each clears what it is for, and walks into no other entry; and entries inside one another."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck.environment import Environment
from compatcheck.matrix._containment import is_inside
from compatcheck.matrix._neighbours import Neighbour
from compatcheck.matrix._traits import Table, trait_finder
from compatcheck.matrix.entry import Entry, RemedyEntry
from compatcheck.matrix.lint._examples import Facts, verdict
from compatcheck.matrix.matching.match import Verdict, match_table
from compatcheck.packages.names import edge
from compatcheck.packages.versions import is_range, parse_range

_version = cache(Version)
_NAMES_RELEASE = (">=", "<=", "==", "~=")
"""The operators of a pin whose version is one that somebody installs."""


class Other(NamedTuple):
    """An entry that a remedy may walk into, with the facts that each of its tables cannot hold without."""

    entry: Entry
    paths: frozenset[str]
    needed: tuple[frozenset[str], ...]


_RUN_FACTS = ("training.", "model.")


def bad_remedies(entry: Entry, active: Sequence[Other], table: Table) -> Iterator[str]:
    harmed = _harmed(entry)
    for number, remedy in enumerate(entry.remedies, 1):
        if not (remedy.pins or remedy.config or remedy.environ):
            continue
        touched = [other for other in active if _speaks_of(other.paths, remedy)]
        for facts in harmed:
            try:
                cured = apply_remedy(remedy, facts)
            except ValueError as error:
                yield f"remedy {number}: {error}"
                break
            yield from (f"remedy {number}: {text}" for text in _still_bad(entry, facts, cured, touched, table))


def _harmed(entry: Entry) -> list[Facts]:
    return [case.environment for case in entry.cases if case.expect == "affected"]


def bad_remedies_beside(entry: Entry, around: Sequence[Neighbour], table: Table) -> Iterator[str]:
    """A remedy must also clear what is affected at a bound."""
    for number, remedy in enumerate(entry.remedies, 1):
        if not (remedy.pins or remedy.config or remedy.environ) or not all(map(edge, remedy.pins.values())):
            continue
        for each in around:
            cured = apply_remedy(remedy, each.environment) if each.holds else {}
            if each.holds and verdict(entry.affected, cured, table) != "unaffected":
                yield f"remedy {number}: does not clear {each.what}"


def loose_pins(entry: Entry, table: Table) -> Iterator[str]:
    """No release that a pin admits may have the fault, as far as the entry's own bounds tell."""
    for number, remedy in enumerate(entry.remedies, 1):
        for name, specifier in remedy.pins.items():
            if not any(is_range(str(conditions.get(f"distributions.{name}", ""))) for conditions in entry.affected):
                continue
            admitted = (
                (version, remedy.model_copy(update={"pins": {**remedy.pins, name: f"=={version}"}}))
                for version in _neighbours(name, specifier, entry, table)
            )
            bad = next((version for version, pinned in admitted if _keeps_fault(entry, pinned, table)), None)
            if bad:
                yield f"remedy {number} allows {name} {bad}, which is affected according to the entry"


def unreleased_pins(entry: Entry, table: Table) -> Iterator[str]:
    """A release that a pin names must be on the index, as far as the table of releases reaches."""
    for number, remedy in enumerate(entry.remedies, 1):
        for name, specifier in remedy.pins.items():
            releases = _releases(name, table)
            exact = (each for each in SpecifierSet(specifier) if each.operator in _NAMES_RELEASE)
            named = (_version(each.version) for each in exact if "*" not in each.version)
            for version in named:
                if releases and releases[0] < version < releases[-1] and version not in releases:
                    yield f"remedy {number} names {name} {version}, which was never released or is withdrawn (yanked)"


def _keeps_fault(entry: Entry, remedy: RemedyEntry, table: Table) -> bool:
    return any(verdict(entry.affected, apply_remedy(remedy, facts), table) == "affected" for facts in _harmed(entry))


def _neighbours(name: str, specifier: str, entry: Entry, table: Table) -> list[Version]:
    """Of the releases that the entry and the specifier name, and those before them, the ones that it allows."""
    allowed = SpecifierSet(specifier, prereleases=True)
    ranges = (conditions.get(f"distributions.{name}") for conditions in entry.affected)
    bounds = {bound.version for text in ranges if text and is_range(text) for bound in parse_range(text)}
    bounds |= {_version(each.version) for each in allowed if "*" not in each.version}
    releases = _releases(name, table)
    before = {releases[at - 1] for bound in bounds if (at := bisect_left(releases, bound))}
    return sorted(version for version in bounds | before if version in allowed)


def _releases(name: str, table: Table) -> list[Version]:
    return [_version(text) for text in table("release-history")["releases"].get(name, ())]


def skipped_fixes(entry: Entry, active: Sequence[Other], table: Table) -> Iterator[str]:
    """A pin beyond the minor release that first has no fault names that release, or the entry against it."""
    for number, remedy in enumerate(entry.remedies, 1):
        if len(remedy.pins) != 1 or remedy.config or remedy.environ:
            continue
        ((name, specifier),) = remedy.pins.items()
        lowest = [_version(each.version) for each in SpecifierSet(specifier) if each.operator == ">="]
        fixed = _first_fixed(name, lowest[0], entry, table) if lowest else None
        if fixed is None or str(fixed) in remedy.why or "CC-" in remedy.why:
            continue
        nearer = remedy.model_copy(update={"pins": {name: f">={fixed}"}})
        touched = [other for other in active if _speaks_of(other.paths, nearer)]
        if not any(
            text
            for each in _harmed(entry)
            for text in _still_bad(entry, each, apply_remedy(nearer, each), touched, table)
        ):
            yield (
                f"remedy {number} skips {name} {fixed}, the first release without the fault: name this "
                "release, or say why not"
            )


def _first_fixed(name: str, lowest: Version, entry: Entry, table: Table) -> Version | None:
    """The release of an older minor version than the pin at which the last range of the entry ends, if it does."""
    ranges = [conditions.get(f"distributions.{name}") for conditions in entry.affected]
    ends = [
        bound.version
        for text in ranges
        if text and is_range(text)
        for bound in parse_range(text)
        if bound.operator == "<"
    ]
    fixed = max(ends, default=None)
    is_older = fixed is not None and fixed.release[:2] < lowest.release[:2]
    return fixed if is_older and fixed in _releases(name, table) else None


def doubles(entry: Entry, active: Sequence[Other]) -> Iterator[str]:
    """An entry that holds only where another of the same packages does tells the same twice, or says what else."""
    wider = {
        other.entry.id: other.entry.title
        for other in active
        if other.entry.id != entry.id
        and set(other.entry.distributions) == set(entry.distributions)
        and all(any(is_inside(table, each) for each in other.entry.affected) for table in entry.affected)
    }
    for name in wider.keys() - entry.overlaps.keys():
        yield (
            f"the entry applies only where {name} ({wider[name]}) applies: merge them, or say in "
            "`overlaps` what this entry adds"
        )
    yield from (
        f"the conditions do not lie within those of {name}: remove it from `overlaps`"
        for name in entry.overlaps
        if name not in wider
    )


def _speaks_of(paths: frozenset[str], remedy: RemedyEntry) -> bool:
    """Whether the remedy changes a fact that a verdict on these can hang on; a trait may hang on any."""
    changed = (
        *(f"distributions.{name}" for name in remedy.pins),
        *(f"environ.{name}" for name in remedy.environ),
        *remedy.config,
    )
    return "traits" in paths or any(
        path.startswith(fact) or fact.startswith(path) for path in paths for fact in changed
    )


def _still_bad(entry: Entry, before: Facts, after: Facts, active: Sequence[Other], table: Table) -> Iterator[str]:
    if verdict(entry.affected, after, table) != "unaffected":
        yield f"does not clear the example {before}"
    environment, traits, known = Environment(after), trait_finder(table), dict[str, Verdict]()
    stated = _stated_facts(after)
    for other, _, needed in active:
        may_hold = (each for each, facts in zip(other.affected, needed) if facts <= stated)
        becomes = any(match_table(each, environment, traits, known).holds for each in may_hold)
        if becomes and other.id != entry.id and verdict(other.affected, before, table) != "affected":
            yield f"leads to {other.id} ({other.title})"


def other(entry: Entry) -> Other:
    paths = frozenset(path for table in entry.affected for path in table)
    return Other(entry, paths, tuple(_needed(table) for table in entry.affected))


def _needed(conditions: Mapping[str, Any]) -> frozenset[str]:
    """The packages without which a table cannot hold, and what must be told of the training and of the model."""
    packages = {path for path, value in conditions.items() if path.startswith("distributions.") and value != "absent"}
    facts = {path for path in conditions if path.startswith(_RUN_FACTS) and path != "training.world_size"}
    return frozenset(packages | {".".join(path.split(".")[:2]) for path in facts})


def _stated_facts(environment: Mapping[str, Any]) -> set[str]:
    packages = (*environment.get("distributions", ()), *environment.get("distribution_ranges", ()))
    facts = {f"{section}{fact}" for section in _RUN_FACTS for fact in environment.get(section[:-1], ())}
    return facts.union(f"distributions.{name}" for name in packages)


def apply_remedy(remedy: RemedyEntry, facts: Facts) -> Facts:
    """The environment after the remedy. Raises ValueError where a pin names no version that can be tried."""
    pinned = {f"distributions.{name}": _edge(specifier) for name, specifier in remedy.pins.items()}
    variables = {f"environ.{name}": value for name, value in remedy.environ.items()}
    environment = Environment(facts)
    for path, value in {**pinned, **variables, **remedy.config}.items():
        environment = environment.with_fact(path, value)
    return environment.facts


def _edge(specifier: str) -> str:
    version = edge(specifier)
    if version is None:
        raise ValueError(f"{specifier!r} names no version that it allows itself; write '<=X' instead of '<Y'")
    return version
