"""Which entries are told that hang on a package nobody spoke of: those first reported nearest to the environment's day.

Where only a few versions are stated, hundreds of entries need one package more. A fault is mostly met in the months in
which it is news, so the day on which it was reported says which of them a person may well have before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from compatcheck.environment import Environment
from compatcheck.inference.report_date import day_of_report

_LATEST = 180
"""Days after which a fault that is there would have been reported."""

_OLDEST = 730
"""Days after which those who met a fault, and say nothing of the package, have left its releases behind."""

Releases = Mapping[str, Mapping[str, Any]]


def nearest(
    entries: Iterable[Mapping[str, Any]], environment: Environment, releases: Releases, number: int
) -> frozenset[str]:
    """The ids of so many entries, published nearest to the day of the report or the newest release that it states.

    ``releases`` has the day of each release by the name of its package. None where no day is known, none that
    nobody had met for another half a year, and none that people had met two years before.
    """
    day = day_of_report(environment) or _day_of_releases(environment, releases)
    if day is None:
        return frozenset()
    published = {entry["id"]: (_parse_day(entry["published"]) - day).days for entry in entries}
    distances = sorted((abs(days), identifier) for identifier, days in published.items() if -_OLDEST <= days <= _LATEST)
    return frozenset(identifier for _, identifier in distances[:number])


def _day_of_releases(environment: Environment, releases: Releases) -> date | None:
    stated = environment.section("distributions")
    days = (releases.get(name, {}).get(version.partition("+")[0]) for name, version in stated.items() if version)
    return max((_parse_day(day) for day in days if day), default=None)


def _parse_day(day: date | str) -> date:
    return date.fromisoformat(day) if isinstance(day, str) else day
