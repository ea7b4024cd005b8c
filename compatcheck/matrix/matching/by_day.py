"""What was out by a day: the remedies somebody could take, and the releases that could be a cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck.language import gettext as _
from compatcheck.packages.versions import contains, parse_range
from compatcheck.results.findings import Remedy

Releases = Mapping[str, Mapping[str, date | str]]
"""The day of each release, by package: the table ``release-history``."""


def remedies_by(remedies: Iterable[Remedy], day: date | None, releases: Releases) -> tuple[Remedy, ...]:
    """The remedies whose pins a release that was out by the day meets; all of them where the day is not known."""
    return tuple(remedy for remedy in remedies if day is None or _is_out(remedy.pins, day, releases))


def existing_first(remedies: Sequence[Remedy], day: date | None, releases: Releases) -> tuple[Remedy, ...]:
    """The remedies that existed on the day of a report, then those that came out later, which say so."""
    existing = remedies_by(remedies, day, releases)
    later = (remedy for remedy in remedies if remedy not in existing)
    words = _("{why}; released after the report of {day}")
    return (*existing, *(remedy._replace(why=words.format(why=remedy.why, day=day)) for remedy in later))


def could_be_run_by(ranges: Mapping[str, str], day: date | None, releases: Releases) -> bool:
    """Whether a release of each package was out by the day in the range of an entry; true where nobody can tell."""
    if day is None:
        return True
    return all(
        not condition.startswith(("<", ">", "="))
        or any(contains(parse_range(condition), version) for version in _versions(name, day, releases))
        for name, condition in ranges.items()
        if name in releases
    )


def _is_out(pins: Mapping[str, str], day: date, releases: Releases) -> bool:
    return all(
        _is_met(specifier, _versions(name, day, releases)) for name, specifier in pins.items() if name in releases
    )


def _is_met(specifier: str, versions: Sequence[Version]) -> bool:
    try:
        allowed = SpecifierSet(specifier)
    except ValueError:
        return True
    return any(allowed.contains(version, prereleases=True) for version in versions)


def _versions(name: str, day: date, releases: Releases) -> list[Version]:
    return [Version(version) for version, out in releases[name].items() if _parse_day(out) <= day]


def _parse_day(day: date | str) -> date:
    return date.fromisoformat(day) if isinstance(day, str) else day
