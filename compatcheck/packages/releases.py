"""Which releases of a package a map of versions shows."""

from __future__ import annotations

from collections.abc import Sequence

_YEARS = 4
"""Releases of the last years are mapped; what is older stands in the entries."""


def minors(history: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The minor releases of the last years, the newest first, each with its newest patch.

    ``history`` holds versions and their days, the oldest first.
    """
    if not history:
        return []
    newest = max(day for _, day in history)
    since = f"{int(newest[:4]) - _YEARS}{newest[4:]}"
    patches = {".".join(version.split(".")[:2]): version for version, day in history if day >= since}
    return [[minor, version] for minor, version in reversed(patches.items())]
