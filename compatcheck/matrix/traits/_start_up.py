"""Which versions a release refuses when it is imported, by the table `start-up-checks`."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from packaging.version import Version

from compatcheck.inference.inferred import Table
from compatcheck.packages.release_rows import Row, rows_of

ENDS = "the package checks its requirements on import and stops there"
"""What a summary adds of such a pair."""


def refusals(releases: Mapping[str, Version], table: Table) -> Iterator[tuple[str, str, str, Sequence[Row]]]:
    """Each package with the other one that its import surely refuses, what it demands, and the rows of the pair.

    Pairs that entries tell are left out, and packages whose checks a variable turns off.
    """
    checks = table("start-up-checks")
    yield from _refused(releases, checks, checks["switches"])


def is_refused(package: str, release: Version, other: str, version: Version, table: Table) -> bool:
    """Whether the import of a release surely ends where it compares the other one, whoever tells it."""
    checks = table("start-up-checks")
    groups = (checks, checks["told"])
    found = (
        each for group in groups for each in _refused({package: release, other: version}, group, checks["switches"])
    )
    return any(each[:2] == (package, other) for each in found)


def _refused(
    releases: Mapping[str, Version], checks: Mapping[str, Any], switches: Container[str]
) -> Iterator[tuple[str, str, str, Sequence[Row]]]:
    from packaging.specifiers import SpecifierSet

    for package in sorted(releases.keys() & checks.keys()):
        rows = {other: listed for other, listed in checks[package].items() if other in releases}
        for other, (_first, _last, demand) in rows_of(releases[package], rows) if package not in switches else ():
            if not SpecifierSet(demand).contains(releases[other], prereleases=True):
                yield package, other, demand, rows[other]
