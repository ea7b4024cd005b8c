"""A series of any length in bounded memory: neighbours are joined when there are too many points."""

from __future__ import annotations

import math

from compatcheck.files import limits


class Series:
    """Values over steps. Each point stands for as many neighbouring values as any other, and keeps the last of them."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float]] = []
        self.count = 0
        self._stride = 1
        self._pending: tuple[float, float] | None = None
        self._in_pending = 0

    def add(self, step: float, value: float) -> None:
        """A value that is not finite is kept before others of its point: it is what one looks for."""
        self.count += 1
        keep = self._pending is None or math.isfinite(self._pending[1])
        if keep:
            self._pending = (step, value)
        self._in_pending += 1
        if self._in_pending == self._stride:
            self._close()
            if len(self.points) >= 2 * limits.CURVE_POINTS:
                self._thin()

    def _close(self) -> None:
        if self._pending is not None:
            self.points.append(self._pending)
        self._pending, self._in_pending = None, 0

    def _thin(self) -> None:
        self._stride *= 2
        pairs = zip(self.points[::2], self.points[1::2])
        self.points = [first if not math.isfinite(first[1]) else second for first, second in pairs]

    def all_points(self) -> tuple[tuple[float, float], ...]:
        return (*self.points, *((self._pending,) if self._pending else ()))

    def finite(self) -> list[float]:
        return [value for _, value in self.all_points() if math.isfinite(value)]
