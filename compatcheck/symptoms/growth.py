"""Whether a series of memory readings keeps growing; pure.

Least squares or a single trend test call every series that settles late, or jumps once, a leak. The rule asks for a
trend, for its size, for its presence in each third, and for all of it again in the window that follows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

_LEAST_Z = 2.33
_LEAST_RISING = 0.3
_LAST_TO_FIRST = 0.5


class Floor(NamedTuple):
    """The growth over a window that is too small to count: in bytes, and as a share of the median reading."""

    size: float
    share: float


def grows(readings: Sequence[float], floor: Floor) -> bool:
    """Whether one window of readings rises steadily and by more than the floor."""
    count = len(readings)
    third = count // 3
    if third < 3:
        return False
    rise = slope(readings) * (count - 1)
    from statistics import median

    if rise <= max(floor.size, floor.share * median(readings)):
        return False
    parts = [slope(part) for part in (readings[:third], readings[third:-third], readings[-third:])]
    steps = [after - before for before, after in zip(readings, readings[1:])]
    return (
        all(part > 0 for part in parts)
        and parts[2] >= _LAST_TO_FIRST * parts[0]
        and sum(step > 0 for step in steps) >= _LEAST_RISING * len(steps)
        and trend(readings) > _LEAST_Z
    )


def slope(readings: Sequence[float]) -> float:
    """The Theil-Sen slope: the median over all pairs, which no single jump can move."""
    indexed = list(enumerate(readings))
    from statistics import median

    return median((later - earlier) / (j - i) for (i, earlier), (j, later) in combinations(indexed, 2))


def trend(readings: Sequence[float]) -> float:
    """The Mann-Kendall z, corrected for ties: how far the order of the readings is from chance."""
    count = len(readings)
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(readings, 2))
    ties = sum(size * (size - 1) * (2 * size + 5) for size in Counter(readings).values())
    variance = (count * (count - 1) * (2 * count + 5) - ties) / 18
    return 0.0 if variance <= 0 or score == 0 else (score - math.copysign(1, score)) / math.sqrt(variance)
