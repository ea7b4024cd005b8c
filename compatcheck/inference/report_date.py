"""What the day of a report tells of the versions that it does not state: what was not out yet is not meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Inference, InferredFacts, Limit, Table
from compatcheck.language import marked

_AHEAD = timedelta(days=60)
"""So long before a release people run builds of the project's main that hold what it will bring."""

_BEHIND = timedelta(days=60)
"""So long after a release people still run the one before it."""

_CALLED_NEWEST = timedelta(days=14)
"""So long after the next release people still call the one before it the latest."""


def limits_by_day(environment: Environment, table: Table) -> dict[str, Limit]:
    """What was out of each package by the day of the report; nothing where there is no day, or it is too late."""
    day = day_of_report(environment)
    if day is None:
        return {}
    history = table("release-history")
    known_until = _parse_day(history["reviewed"])
    if day > known_until:
        return {}
    return {name: _limit(releases, day, known_until) for name, releases in history["releases"].items()}


def newest_by_day(view: Environment, table: Table) -> InferredFacts:
    """The ranges of what a report calls the latest, where it states neither a version nor a range."""
    called, day = view.section("report").get("newest") or {}, day_of_report(view)
    if day is None or not called or day > _parse_day(table("release-history")["reviewed"]):
        return
    history, ranges = table("release-history")["releases"], view.section("distribution_ranges")
    for name, is_newest in called.items():
        if is_newest and name in history and not ranges.get(name) and view.get(f"distributions.{name}") == Unknown():
            oldest = _newest(history[name], day - _CALLED_NEWEST)
            if oldest:
                why = marked("the report calls this version the newest")
                sources = (f"report.newest.{name}", "report.date", "tables/release-history")
                yield f"distribution_ranges.{name}", Inference(f">={oldest}", why, sources)


def _limit(releases: Mapping[str, object], day: date, known_until: date) -> Limit:
    days = [(Version(version), out) for version, out in _days(releases)]
    newest = _newest(releases, day)
    since = max((out for _, out in days if out <= day - _BEHIND), default=day)
    recent = tuple(str(version) for version, out in days if since <= out <= day)
    ahead = max((version for version, out in days if out <= day + _AHEAD), default=None)
    coming = f"<={ahead}" if ahead else f"<{min(version for version, _ in days)}"
    known = day + _AHEAD <= known_until
    return Limit(newest, recent, coming if known else None, day.isoformat())


def _days(releases: Mapping[str, object]) -> Iterator[tuple[str, date]]:
    return ((version, _parse_day(out)) for version, out in releases.items())


def _newest(releases: Mapping[str, Any], day: date) -> str | None:
    """The highest version that was out by a day."""
    newest = max((Version(version) for version, out in _days(releases) if out <= day), default=None)
    return str(newest) if newest else None


def day_of_report(environment: Environment) -> date | None:
    """The day on which the report was written, where that is known."""
    stated = environment.get("report.date")
    return date.fromisoformat(stated) if isinstance(stated, str) else None


def _parse_day(day: Any) -> date:
    return date.fromisoformat(day) if isinstance(day, str) else day
