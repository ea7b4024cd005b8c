"""What a training log and the forward passes say about the health of a run; pure.

The signatures follow how the transformers Trainer logs: its ``logging_nan_inf_filter`` turns a NaN loss into 0.0, so
0.0 alone says little and the gradient norm beside it says which fault it is.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

from compatcheck.language import gettext as _

_STREAK = 3
_ZERO_NORM_STREAK = 5
_MOST_GROUPS = 16
_HISTORY = 50
_FIRST_LOGS = 5
_LEAST_HISTORY = 10
_LARGEST_Z = 5.0
_ABOVE_START = 1.5
_MAD_TO_DEVIATION = 1.4826
_LEAST_PASSES = 8


class Alarm(NamedTuple):
    """Something is wrong: ``symptoms`` in the matrix's words, ``observed`` as the snapshot's ``training.observed``.

    ``stops`` says that going on is useless, not only worth a look.
    """

    signature: str
    step: int
    seen: str
    symptoms: tuple[str, ...]
    observed: Mapping[str, object]
    stops: bool


class Pass(NamedTuple):
    """One forward pass in training: whether its loss was no number, and whether no label was left to learn from."""

    step: int
    nonfinite: bool
    masked: bool


class LogWatch:
    """Reads the Trainer's logs in their order.

    ``patience`` is the number of logs in a row with a NaN or infinite gradient norm that mean something: a loss scaler
    meets such steps while it looks for its scale, and skips them.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.streaks: dict[str, int] = {}
        self.losses: deque[float] = deque(maxlen=_HISTORY)
        self.start: list[float] = []
        self.last_norm: float | None = None

    def feed(self, step: int, logs: Mapping[str, Any], losses_seen_finite: bool = False) -> Iterator[Alarm]:
        """The alarms of one log; ``losses_seen_finite`` says that every loss since the last one was a number."""
        evaluated, loss, norm = (_number(logs.get(key)) for key in ("eval_loss", "loss", "grad_norm"))
        if evaluated is not None and not math.isfinite(evaluated):
            yield _alarm("eval-loss-nan", step, f"eval_loss {evaluated:g}", ("eval-loss-nan",), {}, stops=False)
        if loss is not None:
            observed = {"loss": loss, "grad_norm": norm}
            yield from self._check_finite(step, observed, loss, norm)
            if not losses_seen_finite:
                yield from self._check_zeros(step, observed, loss, norm)
            yield from self._check_course(step, observed, loss)
            self.last_norm = norm

    def _check_finite(self, step: int, observed: Any, loss: float, norm: float | None) -> Iterator[Alarm]:
        bad_norm = norm is not None and not math.isfinite(norm)
        lost = self._streak("grad-norm-nan", bad_norm) >= self.patience
        if not math.isfinite(loss):
            symptoms = ("loss-nan", "grad-norm-nan") if bad_norm else ("loss-nan",)
            yield _alarm("loss-nan", step, _spell(loss, norm), symptoms, observed)
        elif lost:
            symptoms = ("grad-norm-nan", "loss-zero") if loss == 0 else ("grad-norm-nan",)
            yield _alarm("grad-norm-nan", step, _spell(loss, norm), symptoms, observed)

    def _check_zeros(self, step: int, observed: Any, loss: float, norm: float | None) -> Iterator[Alarm]:
        """A loss of 0.0 hides a NaN where, again and again, the gradient norm beside it is one no gradient has."""
        zero = loss == 0
        constant = norm is not None and norm == self.last_norm and _root_of_count(norm)
        seen = _spell(loss, norm)
        if self._streak("both-zero", zero and norm == 0) >= _STREAK:
            yield _alarm("grad-norm-zero", step, seen, ("loss-zero", "grad-norm-zero"), observed)
        if self._streak("constant", zero and constant) >= _STREAK - 1:
            yield _alarm("grad-norm-constant", step, seen, ("loss-zero", "grad-norm-constant"), observed)
        if self._streak("zero", zero and norm is None) >= _STREAK:
            yield _alarm("loss-zero", step, seen, ("loss-zero",), observed)
        if self._streak("norm-zero", not zero and norm == 0) >= _ZERO_NORM_STREAK:
            yield _alarm("grad-norm-zero", step, seen, ("grad-norm-zero",), observed, stops=False)

    def _check_course(self, step: int, observed: Any, loss: float) -> Iterator[Alarm]:
        """Divergence: several logs in a row far above the recent course and above anything the run began with."""
        if not math.isfinite(loss):
            return
        if len(self.start) < _FIRST_LOGS:
            self.start.append(loss)
        far = len(self.losses) >= _LEAST_HISTORY and max(self.start) > 0
        far = far and loss > _ABOVE_START * max(self.start) and _robust_z(loss, self.losses) > _LARGEST_Z
        if self._streak("diverging", far) >= _STREAK:
            usual = _("loss {loss}, after a running median of {median}").format(
                loss=f"{loss:g}", median=f"{median(self.losses):g}"
            )
            yield _alarm("loss-diverging", step, usual, ("loss-diverges",), {**observed, "nonfinite": False})
        if not far:
            self.losses.append(loss)

    def _streak(self, name: str, holds: bool) -> int:
        self.streaks[name] = self.streaks.get(name, 0) + 1 if holds else 0
        return self.streaks[name]


class PassWatch:
    """Reads the forward passes, which see a NaN that the log hides and a batch with nothing to learn from."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.passes = self.masked = self.streak = 0

    def feed(self, passes: Iterable[Pass]) -> Iterator[Alarm]:
        for each in passes:
            self.passes += 1
            self.masked += each.masked
            lost = each.nonfinite and not each.masked
            self.streak = self.streak + 1 if lost else 0
            if self.streak >= self.patience:
                seen, symptoms = _("the model returned a loss that is not a number"), ("loss-nan", "loss-zero")
                yield _alarm("loss-nan", each.step, seen, symptoms, {"loss": math.nan})
            mostly = self.passes >= _LEAST_PASSES and 2 * self.masked >= self.passes
            if each.masked and (each.nonfinite or mostly):
                yield self._masked(each, stops=2 * self.masked >= self.passes and self.masked >= _STREAK)

    def _masked(self, each: Pass, stops: bool) -> Alarm:
        seen = _("all labels of a batch are masked ({count} of {all} batches so far)").format(
            count=self.masked, all=self.passes
        )
        observed = {"loss": 0.0, "grad_norm": 0.0}
        symptoms = ("loss-zero", "grad-norm-zero")
        return _alarm("labels-all-masked", each.step, seen, symptoms, observed, stops=stops)


def _alarm(
    signature: str, step: int, seen: str, symptoms: tuple[str, ...], observed: Mapping[str, Any], stops: bool = True
) -> Alarm:
    numbers = {key: value for key, value in observed.items() if value is not None}
    hidden = signature not in ("loss-diverging", "grad-norm-zero") or "loss-zero" in symptoms
    facts = {**numbers, "nonfinite": numbers.get("nonfinite", hidden), "onset_step": step}
    return Alarm(signature, step, seen, symptoms, facts, stops)


def _number(value: object) -> float | None:
    """A logged value as a number; some releases log text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _spell(loss: float, norm: float | None) -> str:
    return f"loss {loss:g}, grad_norm " + (_("not logged") if norm is None else f"{norm:g}")


def _root_of_count(norm: float) -> bool:
    """Whether a norm is the square root of a small whole number, as DeepSpeed's stand-in for a lost one is."""
    return any(abs(norm - math.sqrt(groups)) < 1e-4 for groups in range(1, _MOST_GROUPS + 1))


def _robust_z(value: float, history: Iterable[float]) -> float:
    values = list(history)
    middle = median(values)
    spread = _MAD_TO_DEVIATION * median(abs(each - middle) for each in values)
    return (value - middle) / max(spread, 1e-3 * abs(middle), 1e-12)
