"""What the day of a report tells of the versions that it does not state: what was not out yet is not meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment, Unknown, lookup
from compatcheck.matrix.loading import Matrix

_AHEAD = timedelta(days=60)
"""So long before a release people run builds of the project's main that hold what it will bring."""

_BEHIND = timedelta(days=60)
"""So long after a release people still run the one before it."""

_CALLED_NEWEST = timedelta(days=14)
"""So long after the next release people still call the one before it the latest."""


class Limit(NamedTuple):
    """The newest release of a package by the day of a report, and what a build of its main was at most, as a range.

    ``newest`` is None for what had no release by then, and was installed from its repository. ``recent`` are those that
    were the newest not long before. ``coming`` is None where the table of releases ends before it is known.
    """

    newest: str | None
    recent: tuple[str, ...]
    coming: str | None
    day: str


def with_limits(matrix: Matrix, environment: Environment) -> Environment:
    """The environment with the newest releases by the day of its report, as ``distribution_limits``."""
    day = day_of_report(environment)
    if day is None:
        return environment
    table = matrix.table("release-history")
    known_until = _as_date(table["reviewed"])
    if day > known_until:
        return environment
    limits = {name: _limit(releases, day, known_until) for name, releases in table["releases"].items()}
    ranges = {**(environment.facts.get("distribution_ranges") or {}), **_of_newest(table["releases"], environment, day)}
    return environment._replace(
        facts={**environment.facts, "distribution_limits": limits, "distribution_ranges": ranges}
    )


def _of_newest(releases: Mapping[str, Any], environment: Environment, day: date) -> dict[str, str]:
    """The ranges of what a report calls the latest, where it states neither a version nor a range."""
    called = (environment.facts.get("report") or {}).get("newest") or {}
    stated = environment.facts.get("distribution_ranges") or {}
    unstated = {
        name
        for name, holds in called.items()
        if holds and not stated.get(name) and lookup(environment, f"distributions.{name}") == Unknown()
    }
    oldest = {name: _newest(releases[name], day - _CALLED_NEWEST) for name in unstated.intersection(releases)}
    return {name: f">={version}" for name, version in oldest.items() if version}


def _limit(releases: Mapping[str, Any], day: date, known_until: date) -> Limit:
    days = [(Version(version), out) for version, out in _days(releases)]
    newest = _newest(releases, day)
    since = max((out for _, out in days if out <= day - _BEHIND), default=day)
    recent = tuple(str(version) for version, out in days if since <= out <= day)
    ahead = max((version for version, out in days if out <= day + _AHEAD), default=None)
    coming = f"<={ahead}" if ahead else f"<{min(version for version, _ in days)}"
    known = day + _AHEAD <= known_until
    return Limit(newest, recent, coming if known else None, day.isoformat())


def _days(releases: Mapping[str, Any]) -> Iterator[tuple[str, date]]:
    return ((version, _as_date(out)) for version, out in releases.items())


def _newest(releases: Mapping[str, Any], day: date) -> str | None:
    """The highest version that was out by a day."""
    newest = max((Version(version) for version, out in _days(releases) if out <= day), default=None)
    return str(newest) if newest else None


def day_of_report(environment: Environment) -> date | None:
    """The day on which the report was written, where that is known."""
    stated = lookup(environment, "report.date")
    return date.fromisoformat(stated) if isinstance(stated, str) else None


def _as_date(day: Any) -> date:
    return date.fromisoformat(day) if isinstance(day, str) else day
