"""A release accepts a version of another package that its own next releases exclude."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.release_rows import Row, rows_of
from compatcheck.packages.versions import final_release


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Whether a pair is there that was ruled out soon; what is not stated may be anything."""
    distributions = environment.get("distributions")
    if isinstance(distributions, Unknown):
        return TraitVerdict(None)
    releases = {name: release for name, text in (distributions or {}).items() if (release := final_release(text))}
    excluding = table("excluded-afterwards")
    occurrences = tuple(
        _occurrence(package, other, row, releases)
        for package in sorted(releases)
        for other, row in rows_of(releases[package], excluding.get(package, {}))
        if other in releases and _is_excluded(releases[other], row)
    )
    complete = environment.facts.get("distributions_complete") is True
    return TraitVerdict(True, occurrences) if occurrences else TraitVerdict(False if complete else None)


def _is_excluded(version: Version, row: Row) -> bool:
    from packaging.specifiers import SpecifierSet

    _first, _last, lowest, highest, _by, demand, _accepting = row
    within = Version(lowest) <= version and (not highest or version <= Version(highest))
    return within and not SpecifierSet(demand).contains(version)


def _occurrence(package: str, other: str, row: Row, releases: Mapping[str, Version]) -> Occurrence:
    _first, _last, _lowest, _highest, by, demand, accepting = row
    summary = (
        f"{package} {releases[package]} accepts {other} {releases[other]}, but its release {by} "
        f"excludes that version: it requires {other}{demand}"
    )
    instead = {package: f">={accepting}"} if accepting else {}
    return Occurrence(summary, (other, package), {other: demand}, instead)
