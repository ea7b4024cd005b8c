"""The settings of the user's files that cannot both hold, which reading has found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment, Location, Unknown

_FACT = "training.contradictions"


def contradictions(environment: Environment, rule: str) -> Iterator[Mapping[str, Any]]:
    """Those that break one rule."""
    stated = environment.get(_FACT)
    return (each for each in (() if isinstance(stated, Unknown) else stated or ()) if each["rule"] == rule)


def is_open(environment: Environment) -> bool:
    """Whether nothing was read that could contradict itself."""
    return isinstance(environment.get(_FACT), Unknown)


def place(contradiction: Mapping[str, Any], which: str = "") -> Location | None:
    """Where a setting stands, or with ``other_`` the one it contradicts."""
    file = contradiction.get(f"{which}file")
    return Location(file, contradiction.get(f"{which}line")) if file else None
