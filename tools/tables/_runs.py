"""What holds for a package release by release, as runs of releases with the same value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from packaging.version import Version

Value = TypeVar("Value")


def runs(by_release: Mapping[Version, Value | None], known: Iterable[Version]) -> list[tuple[str, str, Value]]:
    """The first and the last release of each run with its value; a release without a value ends one."""
    found: list[tuple[str, str, Value]] = []
    before: Value | None = None
    for version in sorted(known):
        value = by_release.get(version)
        if value is not None:
            first = found.pop()[0] if value == before else str(version)
            found.append((first, str(version), value))
        before = value
    return found
