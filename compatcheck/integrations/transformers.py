"""A callback for the transformers Trainer that judges the environment before the first step and watches the run.

    from compatcheck.integrations.transformers import CompatGuard
    trainer = Trainer(..., callbacks=[CompatGuard(on="stop")])

Works with transformers 4.41 to 5.x.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from transformers import TrainerCallback

from compatcheck.environment import Environment
from compatcheck.integrations._running import with_trainer
from compatcheck.integrations.guard import REPORT, Alarm, Guard, Host, TrainingRefused, require_options

__all__ = ["CompatGuard", "TrainingRefused"]

_SCALER_PATIENCE = 24
_ENGINE_PATIENCE = 3


class CompatGuard(TrainerCallback):  # type: ignore[misc]
    """Judges the environment before the first step, then watches gradients, parameters, losses, labels and memory.

    ``on`` is what an alarm does: ``warn`` prints it once, ``stop`` also ends the training; at the start ``stop`` raises
    `TrainingRefused` where a finding is at or above ``fail_on``. ``probes`` runs the probes of what matched first.
    ``window`` is the number of memory readings of one verdict, of which two in a row must agree; a reading, and a look
    at the forward passes, is taken every ``every`` steps. ``trainable``, ``share`` and ``ignore`` are those of `Guard`.
    With the first alarm a report is written into the Trainer's ``output_dir``.

    What only one rank can see (its own passes, its memory) stops a run of one process and warns in others, so that no
    rank waits for one that has left. A failure of the guard itself is told in one line and the training goes on.
    """

    def __init__(
        self,
        on: Literal["warn", "stop"] = "warn",
        *,
        check: bool = True,
        probes: bool = False,
        fail_on: Literal["confirmed", "affected", "possible"] = "affected",
        memory: bool = True,
        window: int = 20,
        every: int = 10,
        trainable: Literal["full", "lora"] | float | None = None,
        share: float = 0.02,
        ignore: Sequence[str] = (),
    ) -> None:
        require_options(on, fail_on, window, every, share, trainable)
        self.options: dict[str, Any] = {
            "on": on,
            "check": check,
            "probes": probes,
            "fail_on": fail_on,
            "memory": memory,
            "window": window,
            "every": every,
            "trainable": trainable,
            "share": share,
            "ignore": ignore,
        }
        self.every = every
        self.guard: Guard | None = None

    @property
    def alarms(self) -> list[Alarm]:
        """Every alarm so far, the first of each signature."""
        return self.guard.alarms if self.guard is not None else []

    @property
    def environment(self) -> Environment:
        """What is installed here and what the Trainer's objects add."""
        return self.guard.environment if self.guard is not None else Environment({})

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.guard is not None:
            self.guard.remove_hooks()
        model, tokenizer = kwargs.get("model"), kwargs.get("processing_class") or kwargs.get("tokenizer")
        engine = getattr(args, "hf_deepspeed_config", None) is not None
        scaled = getattr(args, "fp16", False) is True
        watched = not getattr(args, "torch_compile", False) and getattr(args, "n_gpu", 1) <= 1
        ranks = int(getattr(args, "world_size", 1))
        sharded = engine or bool(getattr(args, "fsdp", None)) or getattr(args, "parallelism_config", None) is not None
        folder = getattr(args, "output_dir", None)
        self.guard = Guard(
            model if watched else None,
            kwargs.get("optimizer") if watched else None,
            **self.options,
            replicated=True if ranks > 1 and not sharded else None,
            report=os.path.join(folder, REPORT) if isinstance(folder, str) else REPORT,
            host=Host(
                lambda environment: with_trainer(environment, args, model, tokenizer) if model else environment,
                bool(state.is_world_process_zero),
                ranks,
                _SCALER_PATIENCE if scaled else _ENGINE_PATIENCE if engine else 1,
            ),
        )

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.guard is not None and self.guard.passes is not None:
            self.guard.passes.step = state.global_step + 1

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        guard = self.guard
        if guard is None:
            return
        guard.run.step = state.global_step
        if state.global_step % self.every == 0:
            guard.look_at_passes()
            guard.weigh(state.global_step)
        control.should_training_stop |= guard.ended

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if self.guard is not None:
            self.guard.log(state.global_step, logs or {})
            control.should_training_stop |= self.guard.ended

    def on_train_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        if self.guard is not None:
            self.guard.close()
