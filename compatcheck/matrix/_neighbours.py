"""Environments one step off the affected examples of an entry: at and beyond each bound, and with a fact missing."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.environment.paths import distribution_of, parts, with_value, without_value
from compatcheck.environment.vocabulary import kind_of
from compatcheck.matrix._traits import Table, trait_finder
from compatcheck.matrix.entry import Entry
from compatcheck.matrix.matching.match import match_table
from compatcheck.packages.versions import Comparator, contains, is_range, parse_range

_FAR = 999
_DEPENDENT = ("traits", "training.runs_on")
"""Conditions that may fail for a version that another condition of the table allows."""

Facts = Mapping[str, Any]


class Neighbour(NamedTuple):
    """An environment that differs in one fact, ``path``, from an example that table ``number`` holds on.

    ``holds`` is what that table must say of it, and ``what`` names the difference.
    """

    number: int
    path: str
    what: str
    environment: Facts
    holds: bool | None


def neighbours(entry: Entry, table: Table) -> Iterator[Neighbour]:
    """Every environment one step off, once: bounds with their releases on either side, flags turned, facts left out."""
    seen: set[str] = set()
    affected = [case.environment for case in entry.cases if case.expect == "affected"]
    for number, conditions in enumerate(entry.affected):
        for facts in affected:
            if not match_table(conditions, Environment(facts), trait_finder(table)).holds:
                continue
            for each in _around(number, conditions, facts, table):
                key = f"{number} {json.dumps(each.environment, sort_keys=True, default=str)}"
                if key not in seen:
                    seen.add(key)
                    yield each


def _around(number: int, conditions: Facts, facts: Facts, table: Table) -> Iterator[Neighbour]:
    depends = any(path in conditions for path in _DEPENDENT)
    for path, condition in conditions.items():
        if not _states(facts, path):
            continue
        for value, holds in _values(path, condition, table):
            if not (holds and depends):
                yield Neighbour(number, path, f"{path} {value}", _with(facts, path, value), holds)
        if condition != "present" or "traits" not in conditions:
            yield Neighbour(number, path, f"no {path}", _without(facts, path), None)


def _states(facts: Facts, path: str) -> bool:
    """Whether the fact is stated itself, so that leaving it out or changing it changes what is known."""
    section, _, name = path.partition(".")
    if section in ("gpu", "every_gpu"):
        gpus: list[Facts] = facts.get("gpus") or [{}]
        return all(name in gpu for gpu in gpus)
    if path in _DEPENDENT:
        return False
    return not isinstance(Environment(facts).get(path), Unknown)


def _values(path: str, condition: Any, table: Table) -> Iterator[tuple[Any, bool]]:
    """Values next to what the condition says, each with whether it allows it."""
    kind = kind_of(path)
    if condition == "present":
        yield None, False
    elif kind == "flag" and isinstance(condition, bool):
        yield not condition, False
    elif isinstance(condition, str) and is_range(condition) and kind == "version":
        bounds = parse_range(condition)
        releases = _releases(distribution_of(path) or "", table)
        for version in sorted({each for bound in bounds for each in _beside(bound, releases)}):
            yield str(version), contains(bounds, version)


def _beside(bound: Comparator, releases: list[Version]) -> Iterator[Version]:
    """The releases on either side of where a bound divides."""
    version = bound.version
    if version.is_prerelease:
        return
    yield version
    if bound.operator in (">=", "<", "=="):
        at = bisect_left(releases, version)
        yield releases[at - 1] if at else _below(version)
    if bound.operator in (">", "<=", "=="):
        at = bisect_right(releases, version)
        yield releases[at] if at < len(releases) else _above(version)


def _below(version: Version) -> Version:
    """A version below one before which no release is known."""
    release = list(version.release)
    last = max((at for at, number in enumerate(release) if number), default=0)
    lower = [*release[:last], max(release[last] - 1, 0), *(_FAR for _ in release[last + 1 :])]
    return Version(".".join(map(str, lower)))


def _above(version: Version) -> Version:
    return Version(".".join(map(str, (*version.release[:-1], version.release[-1] + 1))))


def _releases(name: str, table: Table) -> list[Version]:
    return [_version(text) for text in table("release-history")["releases"].get(name, ())]


_version = cache(Version)


def _with(facts: Facts, path: str, value: Any) -> Facts:
    section, _, name = path.partition(".")
    if section in ("gpu", "every_gpu"):
        return {**facts, "gpus": [{**gpu, name: value} for gpu in facts["gpus"]]}
    return with_value(facts, parts(path), value)


def _without(facts: Facts, path: str) -> Facts:
    section, _, name = path.partition(".")
    if section in ("gpu", "every_gpu"):
        return {**facts, "gpus": [{key: value for key, value in gpu.items() if key != name} for gpu in facts["gpus"]]}
    return without_value(facts, parts(path))
