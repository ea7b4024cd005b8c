"""One run as its readings come in: where it is healthy, where a bad stretch begins, and the curves; bounded memory."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from compatcheck.symptoms._reading import Reading
from compatcheck.symptoms._series import Series
from compatcheck.symptoms._state import State, groups_behind, state_of

LARGE_GRADIENT = 1e5
"""No healthy run has a gradient norm of this size."""


class Placed(NamedTuple):
    """A reading, the line it stands on, the step it is of, its place among the run's readings and on their axis."""

    reading: Reading
    line: int
    step: float | None
    ordinal: int
    x: float
    about: bool = False


class Stretch:
    """Readings in a row that are all bad; ``before`` is the healthy one before them."""

    def __init__(self, first: Placed, before: Placed | None) -> None:
        self.first = first
        self.before = before
        self.length = 0
        self.states: Counter[State] = Counter()
        self.gradients: set[float] = set()

    def add(self, placed: Placed, state: State) -> None:
        self.length += 1
        self.states[state] += 1
        gradient = placed.reading.grad_norm
        if gradient is not None and math.isfinite(gradient) and len(self.gradients) < 4:
            self.gradients.add(gradient)


class RunReader:
    """Takes a run's readings one by one; what it keeps does not grow with their number."""

    def __init__(self, first_line: int, number: int = 0) -> None:
        self.number = number
        self.first_line = self.last_line = first_line
        self.readings = self.evaluations = self.told = 0
        self.last_step: float | None = None
        self.highest_step: float | None = None
        self.highest_epoch: float | None = None
        self.steps_before = 0.0
        self.states: Counter[State] = Counter()
        self.stretch: Stretch | None = None
        self.ended: list[Stretch] = []
        self.not_finite: Placed | None = None
        self.large_gradient: Placed | None = None
        self.before: list[Placed] = []
        self.healthy: Placed | None = None
        self.healthy_before: Placed | None = None
        self.by_step: bool | None = None
        self.last: Placed | None = None
        self.bad_evaluation: Placed | None = None
        self.skipped_in_row = self.skipped = 0
        self.loss_scale: float | None = None
        self.same_loss = 0
        self.same_since: Placed | None = None
        self.learning = False
        self.series = {name: Series() for name in ("loss", "grad_norm", "eval_loss", "memory_mib")}

    def add(self, reading: Reading, line: int, step: float | None, about: bool) -> None:
        self.last_line = line
        if reading.went_on:
            self.skipped_in_row = 0
            return
        if reading.skipped:
            self._skip(reading)
            return
        if reading.loss is not None:
            self._advance(reading.epoch, step)
        ordinal = self.readings + self.evaluations + 1
        placed = Placed(reading, line, step, ordinal, self._x(step, ordinal), about)
        if reading.loss_scale is not None:
            self.loss_scale = reading.loss_scale
        self.told += reading.told
        for name, series in self.series.items():
            value = getattr(reading, name)
            if value is not None:
                series.add(placed.x, value)
        if reading.eval_loss is not None:
            self._evaluate(placed, reading.eval_loss)
        state = state_of(reading)
        if state is not None:
            self.readings += 1
            self._train(placed, state)

    def way_to(self, epoch: float | None, step: float | None) -> float | None:
        """How far ahead a reading lies, below zero where it lies behind; None where nothing of it can be compared."""
        pairs = [(epoch, self.highest_epoch), (step, self.highest_step)]
        ways = [at - highest for at, highest in pairs if at is not None and highest is not None]
        return next((way for way in ways if way), 0.0) if ways else None

    def _advance(self, epoch: float | None, step: float | None) -> None:
        """Keep the furthest place; a loop that counts the steps of each epoch has those before on top."""
        later = epoch is not None and self.highest_epoch is not None and epoch > self.highest_epoch
        anew = step is not None and self.highest_step is not None and step < self.highest_step
        if later and anew:
            self.steps_before += self.highest_step or 0.0
        if step is not None and (later or not anew):
            self.highest_step = step
        if epoch is not None and (later or self.highest_epoch is None):
            self.highest_epoch = epoch

    def _x(self, step: float | None, ordinal: int) -> float:
        """Where a reading stands on the axis of the curves: its step, or its ordinal in a log that begins without."""
        if self.by_step is None:
            self.by_step = step is not None
        if step is not None:
            self.last_step = step
        return self.steps_before + self.last_step if self.by_step and self.last_step is not None else float(ordinal)

    def _train(self, placed: Placed, state: State) -> None:
        self.skipped_in_row = 0
        self.states[state] += 1
        self.last, before = placed, self.last
        reading = placed.reading
        if state == "loss-not-finite" and self.not_finite is None:
            self.not_finite = placed
            self.before += [self.healthy] if self.healthy else []
        if self.large_gradient is None and LARGE_GRADIENT <= (reading.grad_norm or 0.0) < math.inf:
            self.large_gradient = placed
            self.before += [self.healthy] if self.healthy else []
        if before is not None and before.reading.loss == reading.loss and reading.loss:
            self.same_loss += 1
            self.learning = self.learning or bool(reading.learning_rate)
        else:
            self.same_loss, self.same_since, self.learning = 1, placed, False
        if state == "healthy":
            self.healthy_before, self.healthy = self.healthy, placed
            if self.stretch is not None:
                self.ended = [*self.ended[:7], self.stretch]
                self.stretch = None
            return
        if self.stretch is None:
            first = self._first_of_stretch(placed, state)
            self.stretch = Stretch(first, self.healthy)
        self.stretch.add(placed, state)

    def _first_of_stretch(self, placed: Placed, state: State) -> Placed:
        """The reading before it where that has the very same stand-in for a norm: the gradients were lost by then."""
        before, norm = self.healthy, placed.reading.grad_norm
        if state != "zero-with-gradient" or before is None or norm is None or before.reading.grad_norm != norm:
            return placed
        if groups_behind(norm) is None:
            return placed
        self.healthy = self.healthy_before
        return before

    def _evaluate(self, placed: Placed, loss: float) -> None:
        self.evaluations += 1
        if math.isfinite(loss):
            self.bad_evaluation = None
        elif self.bad_evaluation is None:
            self.bad_evaluation = placed

    def _skip(self, reading: Reading) -> None:
        self.skipped += 1
        self.skipped_in_row += 1
        if reading.loss_scale is not None:
            self.loss_scale = reading.loss_scale
