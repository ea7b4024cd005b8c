"""What every check of the guard does unless it says otherwise: nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compatcheck.integrations._training_run import TrainingRun
from compatcheck.integrations._watch import Alarm


class QuietCheck:
    """A check of a running training; each method yields the alarms that it found.

    ``looks`` says that this step is one of those at which a check may spend time.
    """

    def __init__(self, run: TrainingRun) -> None:
        self.run = run

    def before_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        """Called before an optimizer steps, with the gradients as the program left them."""
        return ()

    def after_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        """Called after an optimizer stepped."""
        return ()

    def pending(self) -> Iterable[Alarm]:
        """Alarms of forward passes since the last call, which do not wait for a step."""
        return ()

    def close(self) -> Iterable[Alarm]:
        """Called when the training is over; removes every hook."""
        return ()

    def alarm(
        self, signature: str, seen: str, *symptoms: str, stops: bool = False, observed: dict[str, Any] | None = None
    ) -> Alarm:
        step = self.run.step + 1
        return Alarm(signature, step, seen, symptoms, {**(observed or {}), "onset_step": step}, stops)
