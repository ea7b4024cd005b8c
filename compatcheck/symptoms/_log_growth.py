"""Whether the memory that a log reports keeps growing to its end."""

from __future__ import annotations

from collections.abc import Sequence

from compatcheck.symptoms import growth

LEAST_READINGS = 36
_WINDOW = 24
_WARM_UP = 10
_FLOOR = growth.Floor(0, 0.002)


def grows(values: Sequence[float]) -> float | None:
    """The growth per reading where both halves show it, else None. The first tenth is warm-up."""
    settled = values[max(4, len(values) // _WARM_UP) :]
    if len(settled) < LEAST_READINGS:
        return None
    half = len(settled) // 2
    if not all(growth.grows(_spread(window), _FLOOR) for window in (settled[:half], settled[half:])):
        return None
    return (settled[-1] - settled[0]) / (len(settled) - 1)


def _spread(values: Sequence[float]) -> list[float]:
    if len(values) <= _WINDOW:
        return list(values)
    return [values[round(i * (len(values) - 1) / (_WINDOW - 1))] for i in range(_WINDOW)]
