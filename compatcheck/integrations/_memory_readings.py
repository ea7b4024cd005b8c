"""Memory readings taken one by one, and whether they keep growing."""

from __future__ import annotations

from typing import NamedTuple

from compatcheck.symptoms.growth import Floor, grows, slope

ALLOCATOR_BLOCK = 512
CUDA_FLOOR = Floor(8 * ALLOCATOR_BLOCK, 0.002)
PROCESS_FLOOR = Floor(32 << 20, 0.01)


class Growth(NamedTuple):
    """A lasting growth: bytes per reading, and the readings on which it rests."""

    slope: float
    readings: int


class GrowthWatch:
    """Takes readings one by one; tells of growth once two windows in a row show it."""

    def __init__(self, window: int, warmup: int, floor: Floor) -> None:
        self.window = window
        self.warmup = warmup
        self.floor = floor
        self.readings: list[float] = []

    def feed(self, reading: float) -> Growth | None:
        if self.warmup:
            self.warmup -= 1
            return None
        self.readings.append(reading)
        if len(self.readings) < 2 * self.window:
            return None
        first, second = self.readings[: self.window], self.readings[self.window :]
        if grows(first, self.floor) and grows(second, self.floor):
            return Growth(slope(self.readings), len(self.readings))
        self.readings = second
        return None
