"""Gradients are cleared between one step and the next.

A hook on a few parameters sees what is left in ``grad`` each time a backward pass is about to add to it. If something
was left at every one of them since the last step, that step's gradient is part of the next one's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compatcheck.integrations._samples import is_readable, spread
from compatcheck.integrations._training_run import TrainingRun, untraced
from compatcheck.integrations._watch import Alarm
from compatcheck.integrations.checks._check import QuietCheck
from compatcheck.language import gettext as _

_PARAMETERS = 3
_STREAK = 3
_ENOUGH = 6
"""Steps after which gradients that were cleared need no further look."""


class Check(QuietCheck):
    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        self.handles: list[Any] = []
        self.watched: dict[int, list[Any]] = {}
        self.streak: dict[int, int] = {}
        self.cleared: dict[int, int] = {}
        self.stepped: set[int] = set()
        self.started = False

    def before_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        if not self.started:
            self.started = True
            self._hook()
        return ()

    def after_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        mine = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        judged = False
        for key in self.watched.keys() & mine:
            left, self.watched[key] = self.watched[key], []
            first = key not in self.stepped
            self.stepped.add(key)
            if first or not left:
                continue
            judged = True
            kept = all(each is not None and bool(each) for each in left)
            self.streak[key] = self.streak.get(key, 0) + 1 if kept else 0
            self.cleared[key] = self.cleared.get(key, 0) + (not kept)
        if not judged:
            return
        if any(streak >= _STREAK and not self.cleared.get(key) for key, streak in self.streak.items()):
            self.close()
            seen = _(
                "gradients are not cleared: at each of {steps} steps the backward pass added to the gradients of the"
                " step before; call optimizer.zero_grad() after optimizer.step()"
            ).format(steps=_STREAK)
            symptoms = ("grad-norm-large", "loss-diverges", "loss-plateau")
            yield self.alarm("gradients-not-cleared", seen, *symptoms, stops=False)
        elif all(self.cleared.get(key, 0) >= _ENOUGH for key in self.watched):
            self.run.notes["gradients"] = "gradients are cleared between steps"
            self.close()

    def close(self) -> Iterable[Alarm]:
        for handle in self.handles:
            handle.remove()
        self.handles, self.watched = [], {}
        return ()

    def _hook(self) -> None:
        """Watch some parameters of the models that the optimizers hold; nothing of another's sharding."""
        if self.run.own_copies() or any(_shards(root) for root in self.run.models):
            self.run.unknown["gradients"] = "gradients are sharded or copied"
            return
        held = {id(parameter) for parameter in self.run.held()}
        for each in spread([one for one in self.run.parameters() if _is_watchable(one.parameter, held)], _PARAMETERS):
            self.watched[id(each.parameter)] = []
            self.handles.append(each.parameter.register_hook(untraced(self._noting(each.parameter))))

    def _noting(self, parameter: Any) -> Any:
        key = id(parameter)

        def note(gradient: Any) -> None:
            left = parameter.grad
            if key in self.watched and len(self.watched[key]) < 64:
                self.watched[key].append(None if left is None else left.detach().ne(0).any())

        return note


def _is_watchable(parameter: Any, held: set[int]) -> bool:
    return parameter.requires_grad and parameter.is_leaf and id(parameter) in held and is_readable(parameter)


def _shards(module: Any) -> bool:
    names = {type(each).__name__ for each in module.modules()}
    return any(name.startswith(("FullyShardedDataParallel", "FSDP", "DeepSpeed")) for name in names)
