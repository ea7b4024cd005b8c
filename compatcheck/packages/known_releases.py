"""Which releases of a package exist, as far as the tables of releases know.

The tables hold final releases since 2020. What they do not hold is unknown, never missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from packaging.version import Version

from compatcheck.packages.versions import is_build_label, is_vendor_build

Table = Callable[[str], Mapping[str, Any]]
Standing = Literal["exists", "withdrawn", "missing", "unlisted", "newer", "unknown"]
"""What is known of a version.

- ``missing``: the whole list of releases was read, and it has none of this number.
- ``unlisted``: there is no such release, or it was withdrawn.
- ``newer``: above all releases that were out when the tables were made.
"""

_OF_A_YEAR = 1000
"""A first number from here on is a year, which says nothing of how many releases come before."""


def standing(name: str, version: str, table: Table) -> Standing:
    """Whether a release exists on the public package index.

    The label of one of torch's builds, as ``+cu118``, does not count. More than one major release above the newest is
    ``missing``: majors are not skipped.
    """
    found = _final(version)
    known = releases(name, table)
    if found is None or not known or found < known[0]:
        return "unknown"
    tables = table("installable-releases")
    older = (each for row in tables["older"].get(name, ()) for each in row)
    if found in known or found in map(Version, older):
        return "exists"
    whole = tables["withdrawn"].get(name)
    if found > known[-1]:
        newest = known[-1].major
        return "missing" if newest < _OF_A_YEAR and found.major > newest + 1 else "newer"
    if whole is None:
        return "unlisted"
    return "withdrawn" if any(Version(each) == found for each in whole) else "missing"


def releases(name: str, table: Table) -> tuple[Version, ...]:
    """The final releases since 2020 that were not withdrawn, the oldest first; none for a package without a list."""
    return _parsed(tuple(table("release-history")["releases"].get(name, ())))


def nearest(name: str, version: str, table: Table) -> tuple[str, ...]:
    """The releases next below and above a version, as far as there are any."""
    wanted, known = Version(version), releases(name, table)
    below = [each for each in known if each < wanted][-1:]
    above = [each for each in known if each > wanted][:1]
    return tuple(str(each) for each in (*below, *above))


@lru_cache(maxsize=256)
def _parsed(texts: tuple[str, ...]) -> tuple[Version, ...]:
    return tuple(sorted(map(Version, texts)))


def _final(text: str) -> Version | None:
    """The number of a final release; None for pre-releases and for builds that somebody else numbers."""
    release, plus, label = text.partition("+")
    if is_vendor_build(text) or (plus and not is_build_label(label)):
        return None
    try:
        version = Version(release)
    except ValueError:
        return None
    return None if version.is_prerelease else version


class Bounds(NamedTuple):
    """The newest and the oldest release that a Python or a platform can have; None is no bound that is known."""

    newest: Version | None = None
    oldest: Version | None = None


def bounds(name: str, place: str, table: Table) -> Bounds:
    """The releases of a package with a file for a place: a Python version, or a platform as `platform_of` names it."""
    key, suffix = (".".join(place.split(".")[:2]), "") if place[:1].isdigit() else (place, "_on")
    tables = table("installable-releases")
    found = (tables.get(f"{end}{suffix}", {}).get(name, {}).get(key) for end in ("newest", "oldest"))
    return Bounds(*(Version(each) if each else None for each in found))


def platform_of(platform: Mapping[str, Any]) -> str | None:
    """The platform as the table names it, as ``darwin-arm64``; None for one that is not stated."""
    system, machine = platform.get("system"), platform.get("machine")
    if not isinstance(system, str) or not isinstance(machine, str):
        return None
    return f"{system.lower()}-{machine.lower()}"
