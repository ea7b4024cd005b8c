"""Watch a training loop for faults that its loss hides, whatever framework runs it.

    from compatcheck.integrations.guard import Guard

    guard = Guard(model, optimizer)
    for batch in loader:
        ...
        optimizer.step()
        guard.step(loss)

Works with torch 2.0 and later. `compatcheck.integrations.transformers` and `compatcheck.integrations.lightning` are
callbacks that do the same; objects that accelerate prepared are given as they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from compatcheck.environment import Environment
from compatcheck.errors import CompatcheckError
from compatcheck.files.units import units
from compatcheck.integrations._alarm_book import OWN_FAILURES, AlarmBook, TrainingRefused, TrainingStopped
from compatcheck.integrations._memory_readings import CUDA_FLOOR, PROCESS_FLOOR, GrowthWatch
from compatcheck.integrations._passes import ForwardWatch, cuda_bytes, process_bytes
from compatcheck.integrations._running import with_model
from compatcheck.integrations._samples import unwrapped
from compatcheck.integrations._training_run import TrainingRun, is_compiled, untraced
from compatcheck.integrations._watch import Alarm, LogWatch, PassWatch
from compatcheck.language import gettext as _
from compatcheck.results.findings import STATUSES

__all__ = ["Alarm", "Guard", "Host", "TrainingRefused", "TrainingStopped"]

REPORT = "compatcheck-guard.md"
_CHECKS = "compatcheck.integrations.checks"
_FIRST_LOOKS = 5
_WARMUP = 4
_SMALLEST_COST = 1e-4


class Host(NamedTuple):
    """What a framework's callback knows of its run; it ends the training itself, so that nothing is raised.

    ``patience`` is the number of steps in a row without a finite gradient norm that mean something.
    """

    facts: Callable[[Environment], Environment]
    speaks: bool
    world_size: int
    patience: int = 1


class Guard:
    """Check the environment before the first step, then watch gradients, parameters, losses and memory.

    ``model`` and ``optimizer`` are the model and the optimizer of the loop, or sequences of several. Hooks see each
    step. Pass the loss to `step` if the model does not return it. Close the guard at the end of the training, or use it
    in a ``with`` statement.

    ``on`` selects what an alarm does. ``warn`` prints the alarm once, with its explanations. ``stop`` also raises
    `TrainingStopped` if continuing is useless, and `TrainingRefused` at the start if a finding is at or above
    ``fail_on``. ``trainable`` states which parameters should train: ``full``, ``lora`` or a fraction of the elements.
    ``replicated`` states that every rank of ``group`` holds the same parameters; for DistributedDataParallel this is
    known. ``share`` limits the part of the time that the checks take after the first steps. ``ignore`` lists the
    signatures of alarms that are no fault here. ``report`` is the file that is written with the first alarm. ``host``
    is for callbacks.
    """

    def __init__(
        self,
        model: Any = None,
        optimizer: Any = None,
        *,
        on: Literal["warn", "stop"] = "warn",
        check: bool = True,
        probes: bool = False,
        fail_on: Literal["confirmed", "affected", "possible"] = "affected",
        memory: bool = True,
        window: int = 20,
        every: int = 10,
        trainable: Literal["full", "lora"] | float | None = None,
        replicated: bool | None = None,
        group: Any = None,
        share: float = 0.02,
        ignore: Sequence[str] = (),
        report: str | None = REPORT,
        host: Host | None = None,
    ) -> None:
        require_options(on, fail_on, window, every, share, trainable)
        self.every, self.window, self.share, self.memory = every, window, share, memory
        self.raises = host is None
        host = host or _loop(_listed(model))
        self.book = AlarmBook(
            stops=on == "stop",
            speaks=host.speaks,
            alone=host.world_size == 1,
            report=report,
            ignore=tuple(ignore),
        )
        self.run = TrainingRun(_listed(model), _listed(optimizer), trainable, replicated, group)
        self.logs, self.losses = LogWatch(host.patience), PassWatch(host.patience)
        self.passes: ForwardWatch | None = None
        self.all_finite: bool | None = None
        self.unread: list[tuple[int, Any, Any]] = []
        self.handles: list[Any] = []
        self.checks: list[Any] = []
        self.looks: dict[int, tuple[int, int]] = {}
        self.looking: dict[int, bool] = {}
        self.spent = self.dearest = self.began = 0.0
        self.ended = False
        self._set_memory()
        self.book.judge_environment(host.facts, check=check, probes=probes, fail_on=fail_on)
        self._hook()

    @property
    def alarms(self) -> list[Alarm]:
        """Every alarm so far, the first of each signature."""
        return self.book.alarms

    @property
    def environment(self) -> Environment:
        """What is installed here and what the objects in use add."""
        return self.book.environment

    @property
    def unknown(self) -> dict[str, str]:
        """What could not be judged, and why."""
        return dict(self.run.unknown)

    @property
    def notes(self) -> dict[str, str]:
        """What was judged, in numbers."""
        return dict(self.run.notes)

    def step(self, loss: Any = None, grad_norm: Any = None) -> None:
        """Hand over the loss of a step, a number or a tensor of one element; it is read every few steps.

        Raises `TrainingStopped` where an alarm ends the training.
        """
        if loss is not None or grad_norm is not None:
            self.unread.append((max(self.run.step, 1), _detached(loss), _detached(grad_norm)))
        if not self.handles:
            self.run.step += 1
            self._count()
        elif len(self.unread) >= self.every:
            self._read()
        self._stop_if_ended()

    def log(self, step: int, logs: Any) -> None:
        """Take what a framework logs: ``loss``, ``grad_norm``, ``eval_loss``."""
        self.look_at_passes()
        finite, self.all_finite = self.all_finite is True, None
        for alarm in self.logs.feed(step, logs, losses_seen_finite=finite and self.book.alone):
            self.add(alarm, seen_by_all=True)

    def look_at_passes(self) -> None:
        """Read what the forward passes noted since the last time."""
        passes = self.passes.drain() if self.passes is not None else []
        if passes:
            healthy = not any(each.nonfinite or each.masked for each in passes)
            self.all_finite = healthy and self.all_finite is not False
        for alarm in self.losses.feed(passes):
            self.add(alarm)
        for check in self.checks:
            self._take(check, check.pending)

    def weigh(self, step: int) -> None:
        """Take a reading of the memory."""
        reading = self.reading() if self.memory else None
        grown = self.growth.feed(reading) if reading is not None else None
        if grown:
            kib = f"{grown.slope / self.every / 1024:.0f}"
            seen = _("memory grows by {kib} KiB at every step over {count} readings").format(
                kib=kib, count=grown.readings
            )
            self.add(Alarm("memory-growth", step, seen, ("memory-growth",), {"onset_step": step}, stops=True))

    def add(self, alarm: Alarm, *, seen_by_all: bool = False) -> None:
        """Tell an alarm; the training ends at the next `step` where it is useless to go on."""
        self.ended |= self.book.add(alarm, seen_by_all=seen_by_all)

    def close(self) -> None:
        """Read what is left, and remove every hook. Nothing is raised."""
        self._read()
        self.look_at_passes()
        for check in self.checks:
            self._take(check, check.close)
        self.remove_hooks()

    def remove_hooks(self) -> None:
        """Leave the model and the optimizer as they were."""
        for check in self.checks:
            self._quietly(check.close)
        for handle in self.handles:
            handle.remove()
        if self.passes is not None:
            self.passes.close()
        self.handles, self.checks, self.passes = [], [], None

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _hook(self) -> None:
        try:
            if self.run.models and not is_compiled(self.run.models[0]):
                self.passes = ForwardWatch(self.run.roots[0])
            for optimizer in self.run.optimizers:
                if not hasattr(optimizer, "register_step_pre_hook"):
                    self.run.unknown["optimizer"] = (
                        f"{type(optimizer).__name__} has no hooks: torch is older than 2.0, or the optimizer is not "
                        "from torch"
                    )
                    continue
                self.handles.append(optimizer.register_step_pre_hook(untraced(self._before)))
                self.handles.append(optimizer.register_step_post_hook(untraced(self._after)))
            self.checks = [module.Check(self.run) for module in units(_CHECKS).values()] if self.run.models else []
        except OWN_FAILURES as error:
            self.book.fail(_("the guard could not watch this training"), error)
            self.remove_hooks()

    def _before(self, optimizer: Any, *rest: Any) -> None:
        started = time.perf_counter()
        self.began = self.began or started
        looks = self.looking[id(optimizer)] = self._may_look(optimizer, started)
        for check in self.checks:
            self._take(check, check.before_step, optimizer, looks)
        self._charge(started, looks)

    def _after(self, optimizer: Any, *rest: Any) -> None:
        started = time.perf_counter()
        looks = self.looking.get(id(optimizer), False)
        for check in self.checks:
            self._take(check, check.after_step, optimizer, looks)
        if optimizer is self.run.optimizers[0]:
            self.run.step += 1
            if self.passes is not None:
                self.passes.step = self.run.step + 1
            self._count()
        self._charge(started, looks)
        self._stop_if_ended()

    def _may_look(self, optimizer: Any, now: float) -> bool:
        """In the first steps, then every few steps as long as one more look keeps the cost within the share."""
        count, last = self.looks.get(id(optimizer), (0, 0))
        step = self.run.step
        if count >= _FIRST_LOOKS:
            within = self.spent + self.dearest <= self.share * (now - self.began)
            if not within or step - last < self.every:
                return False
        self.looks[id(optimizer)] = (count + 1, step)
        return True

    def _charge(self, started: float, looks: bool) -> None:
        cost = time.perf_counter() - started
        self.spent += cost
        if looks:
            self.dearest = max(2 * cost, 0.9 * self.dearest, _SMALLEST_COST)

    def _count(self) -> None:
        if self.run.step % self.every == 0:
            self._read()
            self.look_at_passes()
            if self.raises:
                self.weigh(self.run.step)

    def _read(self) -> None:
        """Read the losses that were handed over; on a GPU this waits for them."""
        unread, self.unread = self.unread, []
        for step, loss, norm in unread:
            values = {"loss": _number(loss), "grad_norm": _number(norm)}
            for alarm in self.logs.feed(step, values, losses_seen_finite=True):
                self.add(alarm)

    def _take(self, owner: Any, call: Callable[..., Iterable[Alarm]], *arguments: Any) -> None:
        """Add the alarms of a check; one that fails is told once and is left out from then on."""
        try:
            for alarm in call(*arguments):
                self.add(alarm)
        except OWN_FAILURES as error:
            self.checks = [check for check in self.checks if check is not owner]
            name = type(owner).__module__.rpartition(".")[2]
            self.run.unknown[name] = str(error) or type(error).__name__
            self.book.fail(_("the guard's check {name} failed").format(name=name), error)

    def _quietly(self, call: Callable[[], Iterable[Alarm]]) -> None:
        try:
            list(call())
        except OWN_FAILURES as error:
            self.run.unknown["hooks"] = str(error)

    def _stop_if_ended(self) -> None:
        if self.ended and self.raises:
            alarm = self.alarms[-1]
            self.remove_hooks()
            advice = _("see the explanations above, or set on='warn'")
            raise TrainingStopped("training", f"step {alarm.step}", f"{alarm.signature}: {alarm.seen}", advice)

    def _set_memory(self) -> None:
        on_gpu = any(
            parameter.device.type == "cuda" for root in self.run.roots for parameter in list(root.parameters())[:1]
        )
        self.reading: Callable[[], float | None] = cuda_bytes if on_gpu else process_bytes
        self.growth = GrowthWatch(self.window, _WARMUP, CUDA_FLOOR if on_gpu else PROCESS_FLOOR)


def require_options(on: str, fail_on: str, window: int, every: int, share: float, trainable: Any) -> None:
    """Raise `CompatcheckError` where an option of a guard is none."""
    named = trainable in (None, "full", "lora") or (isinstance(trainable, (int, float)) and 0 < trainable <= 1)
    fits = on in ("warn", "stop") and fail_on in STATUSES and window >= 9 and every >= 1 and 0 < share <= 1 and named
    if not fits:
        seen = f"on={on!r}, fail_on={fail_on!r}, window={window}, every={every}, share={share}, trainable={trainable!r}"
        advice = (
            "set on to warn or stop, fail_on to a status, window to 9 or more, every to 1 or more, "
            "and share and the fraction of trainable elements to numbers between 0 and 1"
        )
        raise CompatcheckError("setting up", "the guard", seen, advice)


def _listed(given: Any) -> tuple[Any, ...]:
    if given is None:
        return ()
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)


def _loop(models: tuple[Any, ...]) -> Host:
    """A loop of the user's own as its host."""
    rank, ranks = _ranks()
    root = unwrapped(models[0]) if models else None
    return Host(lambda environment: with_model(environment, root), rank == 0, ranks)


def _ranks() -> tuple[int, int]:
    """This rank and how many there are, by torch.distributed or the launcher's variables."""
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    found = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    rank, size = (int(value) if value.isdigit() else default for value, default in zip(found, (0, 1)))
    return rank, max(size, 1)


def _detached(value: Any) -> Any:
    return value.detach() if hasattr(value, "detach") else value


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
