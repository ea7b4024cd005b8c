"""A callback for the transformers Trainer that judges the environment before the first step and watches the run.

    from compatcheck.integrations.transformers import CompatGuard
    trainer = Trainer(..., callbacks=[CompatGuard(on="stop")])

Works with transformers 4.41 to 5.x.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Literal

from transformers import TrainerCallback

from compatcheck import matrix
from compatcheck.environment import Environment, Target
from compatcheck.errors import CompatcheckError
from compatcheck.installed.collect import collect
from compatcheck.installed.target import own_target
from compatcheck.integrations._diagnosis import explain, render_alarm
from compatcheck.integrations._memory_readings import CUDA_FLOOR, PROCESS_FLOOR, GrowthWatch
from compatcheck.integrations._passes import ForwardWatch, cuda_bytes, process_bytes
from compatcheck.integrations._running import with_trainer
from compatcheck.integrations._watch import Alarm, LogWatch, PassWatch
from compatcheck.pipelines.verdict import Options, Probing, Verdict, judge
from compatcheck.report import render
from compatcheck.report.subjects.check import document
from compatcheck.results.findings import STATUSES, Finding, failing

_OWN_FAILURES = (CompatcheckError, OSError, LookupError, TypeError, ValueError, AttributeError)
"""What a damaged installation or an unusual model raises in the guard's own code: never a reason to end a training."""

_SCALER_PATIENCE = 24
_ENGINE_PATIENCE = 3
_WARMUP = 4


class TrainingRefused(CompatcheckError):
    """The environment has a finding at or above ``fail_on``, and the guard was told to stop for that."""


class CompatGuard(TrainerCallback):  # type: ignore[misc]
    """Judges the environment before the first step, then watches loss, gradient norm, labels and memory.

    ``on`` is what an alarm does: ``warn`` prints it once, ``stop`` also ends the training; at the start ``stop`` raises
    `TrainingRefused` where a finding is at or above ``fail_on``. ``probes`` runs the probes of what matched first.
    ``window`` is the number of memory readings of one verdict, of which two in a row must agree; a reading, and a look
    at the forward passes, is taken every ``every`` steps.

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
    ) -> None:
        if on not in ("warn", "stop") or fail_on not in STATUSES or window < 9 or every < 1:
            seen = f"on={on!r}, fail_on={fail_on!r}, window={window}, every={every}"
            raise CompatcheckError(
                "setting up",
                "CompatGuard",
                seen,
                "on is warn or stop, fail_on a status, window 9 or more, every 1 or more",
            )
        self.on, self.check, self.probes, self.fail_on = on, check, probes, fail_on
        self.memory, self.window, self.every = memory, window, every
        self.passes: ForwardWatch | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        model = kwargs.get("model")
        self.alarms: list[Alarm] = []
        self.all_finite: bool | None = None
        self.environment = Environment({})
        self.known: matrix.Matrix | None = None
        self.ending = False
        self.speaks = bool(state.is_world_process_zero)
        self.alone = int(getattr(args, "world_size", 1)) == 1
        self._set_watches(args, model)
        verdict = self._verdict(args, model, kwargs.get("processing_class") or kwargs.get("tokenizer"))
        if verdict is not None:
            self._rule(verdict)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.passes is not None:
            self.passes.step = state.global_step + 1

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step % self.every == 0:
            self._look(control)
            self._weigh(state.global_step, control)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self._look(control)
        finite, self.all_finite = self.all_finite is True, None
        for alarm in self.logs.feed(state.global_step, logs or {}, losses_seen_finite=finite and self.alone):
            self._raise(alarm, control, alarm.stops)

    def on_train_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        self._look(control)
        self._unhook()

    def _set_watches(self, args: object, model: object) -> None:
        scaled = getattr(args, "fp16", False) is True
        engine = getattr(args, "hf_deepspeed_config", None) is not None
        patience = _SCALER_PATIENCE if scaled else _ENGINE_PATIENCE if engine else 1
        self.logs, self.losses = LogWatch(patience), PassWatch(patience)
        on_gpu = getattr(getattr(model, "device", None), "type", "cpu") == "cuda"
        self.reading = cuda_bytes if on_gpu else process_bytes
        self.growth = GrowthWatch(self.window, _WARMUP, CUDA_FLOOR if on_gpu else PROCESS_FLOOR)
        self._unhook()
        if model is not None and not getattr(args, "torch_compile", False) and getattr(args, "n_gpu", 1) <= 1:
            self.passes = ForwardWatch(model)

    def _verdict(self, args: Any, model: Any, tokenizer: Any) -> Verdict | None:
        """The verdict before the first step; None where the guard was told not to, or could not."""
        try:
            self.known = matrix.load()
            target = _this_interpreter()
            self.environment = collect(target, self.known.environ)
            if model is not None:
                self.environment = with_trainer(self.environment, args, model, tokenizer)
            if not self.check or (self.probes and not self.speaks):
                return None
            options = Options(fail_on=self.fail_on)
            return judge(self.environment, self.known, options, Probing(target) if self.probes else None)
        except _OWN_FAILURES as error:
            self._say(f"the guard could not judge this environment: {error or type(error).__name__}")
            return None

    def _rule(self, verdict: Verdict) -> None:
        report = verdict.report
        bad = [finding for finding in report.findings if finding.status in failing(self.fail_on)]
        if not bad:
            self._say(f"{verdict.reason} among {report.matrix_entries} entries")
            return
        self._say(render(document(report), "text").rstrip())
        if self.on == "stop":
            self._unhook()
            seen = "; ".join(f"{finding.id} {finding.title}" for finding in bad)
            raise TrainingRefused("starting", "the training", seen, "see the fixes above, or set on='warn'")

    def _look(self, control: object) -> None:
        passes = self.passes.drain() if self.passes is not None else []
        if passes:
            healthy = not any(each.nonfinite or each.masked for each in passes)
            self.all_finite = healthy and self.all_finite is not False
        for alarm in self.losses.feed(passes):
            self._raise(alarm, control, alarm.stops and self.alone)

    def _weigh(self, step: int, control: Any) -> None:
        reading = self.reading() if self.memory else None
        grown = self.growth.feed(reading) if reading is not None else None
        if grown:
            seen = f"{grown.slope / self.every / 1024:.0f} KiB more at every step over {grown.readings} readings"
            alarm = Alarm("memory-growth", step, seen, ("memory-growth",), {"onset_step": step}, stops=True)
            self._raise(alarm, control, self.alone)

    def _raise(self, alarm: Alarm, control: Any, stops: bool) -> None:
        """Tell an alarm the first time its signature is met; end the training where it is useless to go on."""
        stops = stops and self.on == "stop"
        if all(alarm.signature != each.signature for each in self.alarms):
            self.alarms.append(alarm)
            if not self.ending:
                self._say("\n".join(render_alarm(alarm, self._explain(alarm))))
        if stops and not self.ending:
            self.ending = True
            self._say(f"the training ends after this step, for {alarm.signature}")
        control.should_training_stop |= stops

    def _explain(self, alarm: Alarm) -> list[Finding] | None:
        """What explains an alarm; None where nothing could be looked up."""
        try:
            return explain(self.environment, self.known, alarm) if self.known is not None else None
        except _OWN_FAILURES as error:
            self._say(f"the guard could not look the alarm up: {error or type(error).__name__}")
            return None

    def _say(self, text: str) -> None:
        if self.speaks:
            print("\n".join(f"compatcheck: {line}" for line in text.splitlines()), file=sys.stderr, flush=True)

    def _unhook(self) -> None:
        if self.passes is not None:
            self.passes.close()
            self.passes = None


def _this_interpreter() -> Target:
    return own_target(os.environ)
