"""Name files of which one is meant, in a line that can be read."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 4
_LONGEST = 120


def listed(paths: Sequence[str], joint: str = ", ") -> str:
    """The first few of these paths, and how many more there are."""
    shown = joint.join(f"{path:.{_LONGEST}}" for path in paths[:_SHOWN])
    return f"{shown} and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else shown


def more_than_one(paths: Sequence[str]) -> str:
    """That there are as many as these, and which."""
    return f"there are {len(paths)} such files; pass the file that is in use: {listed(paths)}"
