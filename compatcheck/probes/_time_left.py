"""How long the probes that are left will take: what they typically take, corrected by what was seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import ModuleType

from compatcheck.probes._process import OnStage

OnProgress = Callable[[str, str, float], None]
"""Called with the name of the probe that runs, the stage it has reached, and the seconds left for all of them."""

_IMPORTS = 4.0
_BOUNDS = (0.25, 4.0)


class Pace:
    """The clock of one run."""

    def __init__(self, units: Sequence[ModuleType]) -> None:
        self.imports = self.typical = self.seen = _IMPORTS
        self.left = self.imports + sum(map(_typical, units))
        self.begun = time.monotonic()

    def listener(self, name: str, on_progress: OnProgress | None) -> OnStage | None:
        """What one probe tells its stages to."""
        self.begun = time.monotonic()
        if on_progress is None:
            return None
        return lambda stage, _: on_progress(name, stage, self.seconds_left())

    def done(self, unit: ModuleType, seconds: float) -> None:
        """A probe is through; the first that ran did the imports as well, one that took no time was remembered."""
        self.left -= _typical(unit)
        if seconds:
            self.typical += _typical(unit) + self.imports
            self.seen += seconds
            self.left, self.imports = self.left - self.imports, 0.0

    def seconds_left(self) -> float:
        factor = min(max(self.seen / self.typical, _BOUNDS[0]), _BOUNDS[1])
        return max(self.left * factor - (time.monotonic() - self.begun), 0.0)


def _typical(unit: ModuleType) -> float:
    return float(unit.SECONDS)
