"""Every parameter that is meant to train has a gradient and changes, and the optimizer holds the model's own.

A few elements of each parameter are read before one step and again before the next, so that whatever writes the result
back has done so. An element is evidence only if its gradient and the learning rate are large enough to change it in its
own precision; without evidence nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from compatcheck.integrations._samples import Named, is_readable, local, samples, spread
from compatcheck.integrations._training_run import TrainingRun
from compatcheck.integrations._watch import Alarm
from compatcheck.integrations.checks._check import QuietCheck
from compatcheck.language import gettext as _

_STREAK, _LONG_STREAK = 3, 10
_ROUNDINGS = 4.0
"""Units in the last place by which an update has to exceed an element before its absence means something."""

_ADAM_SHARE = 0.1
"""The part of the learning rate that an element moves at least under Adam, as far as it is evidence."""

_LEAST_GRADIENT = 1e-6
_LEAST_RATE = 1e-5
_FAMILIES = {"SGD": "sgd", "Adam": "adam", "AdamW": "adam"}
_MOST_NAMES = 3


class _Row(NamedTuple):
    """A parameter before a step: ``rate`` is None where no optimizer of ours holds it."""

    named: Named
    before: Any
    rate: float | None
    in_model: bool


class _Ledger:
    """What the looks at one optimizer found of each parameter."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.gradients: list[Any] = []
        self.exists: list[bool] = []
        self.still: dict[int, int] = {}
        self.changed: set[int] = set()
        self.with_gradient: set[int] = set()
        self.looks = 0
        self.idle = 0


class Check(QuietCheck):
    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        self.ledgers: dict[int, _Ledger] = {}

    def before_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        ledger = self.ledgers.setdefault(id(optimizer), _Ledger())
        if ledger.rows:
            yield from self._weigh(optimizer, ledger)
        if looks and self._may_compare():
            ledger.rows = self._rows(optimizer)

    def after_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        ledger = self.ledgers.get(id(optimizer))
        if ledger is not None and ledger.rows:
            gradients = [row.named.parameter.grad for row in ledger.rows]
            ledger.exists = [gradient is not None for gradient in gradients]
            if _skipped(optimizer):
                ledger.rows = []
            else:
                ledger.gradients = samples([_readable_gradient(each) for each in gradients])
        return ()

    def _may_compare(self) -> bool:
        reason = self.run.own_copies()
        if reason:
            self.run.unknown["parameters"] = reason
        return not reason

    def _rows(self, optimizer: Any) -> list[_Row]:
        named = self.run.parameters()
        names = {id(each.parameter): each.name for each in named}
        held = {id(parameter) for parameter in self.run.held()}
        rates = {
            id(parameter): float(group.get("lr", 0.0))
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        strangers = [
            Named(f"parameter {number} of {type(optimizer).__name__}", parameter)
            for number, parameter in enumerate(each for group in optimizer.param_groups for each in group["params"])
            if id(parameter) not in names
        ]
        outside = [each for each in named if id(each.parameter) not in held and each.parameter.requires_grad]
        own = [each for each in named if id(each.parameter) in rates]
        chosen = [each for each in (*spread(own), *spread(outside), *spread(strangers)) if is_readable(each.parameter)]
        values = samples(each.parameter for each in chosen)
        return [
            _Row(each, value, rates.get(id(each.parameter)), id(each.parameter) in names)
            for each, value in zip(chosen, values)
        ]

    def _weigh(self, optimizer: Any, ledger: _Ledger) -> Iterator[Alarm]:
        rows, ledger.rows = ledger.rows, []
        gradients, exists = ledger.gradients, ledger.exists
        if len(gradients) != len(rows) or any(id(each.named.parameter) == 0 for each in rows):
            return
        now = samples(row.named.parameter for row in rows)
        ledger.looks += 1
        evident = 0
        for row, gradient, found, has in zip(rows, gradients, now, exists):
            key = id(row.named.parameter)
            if has:
                ledger.with_gradient.add(key)
            if bool((row.before != found).any()):
                ledger.changed.add(key)
                ledger.still[key] = 0
            elif gradient is not None and _expects_change(row, gradient, optimizer):
                ledger.still[key] = ledger.still.get(key, 0) + 1
                evident += 1
        yield from self._nothing_trains(optimizer, ledger, rows, exists)
        yield from self._single_parameters(optimizer, ledger, rows)
        yield from self._outside(ledger, rows)
        self._note(ledger, rows)

    def _nothing_trains(self, optimizer: Any, ledger: _Ledger, rows: list[_Row], exists: list[bool]) -> Iterator[Alarm]:
        own = [row for row in rows if row.in_model and row.rate is not None]
        trained = [row for row in own if row.named.parameter.requires_grad]
        outside = [row for row in rows if row.rate is None]
        still_outside = [row for row in outside if ledger.still.get(id(row.named.parameter), 0) >= _STREAK]
        moving = any(ledger.still.get(id(row.named.parameter), 1) == 0 for row in outside)
        if not own and still_outside and not moving:
            strangers = len(rows) - len(outside)
            seen = _(
                "{optimizer} holds {count} parameters and none of the model's, so the model does not change: {names}"
                " got gradients; build the optimizer from the model that trains, after it was wrapped"
            ).format(optimizer=type(optimizer).__name__, count=strangers, names=_names(still_outside))
            yield self.alarm("optimizer-holds-other-parameters", seen, "nothing-learned", "loss-plateau", stops=True)
            return
        if own and not trained and still_outside and not moving:
            seen = _(
                "all {count} parameters of {optimizer} are frozen, while {names} get gradients but are "
                "in no optimizer: nothing trains"
            ).format(count=len(own), optimizer=type(optimizer).__name__, names=_names(still_outside))
            symptoms = ("nothing-learned", "wrong-trainable-parameters", "loss-plateau")
            yield self.alarm("optimizer-holds-frozen-parameters", seen, *symptoms, stops=True)
            return
        needed = _STREAK if _family(optimizer) else _LONG_STREAK
        evident = [row for row in trained if ledger.still.get(id(row.named.parameter), 0) >= needed]
        moves = [row for row in trained if ledger.still.get(id(row.named.parameter)) == 0]
        if evident and not moves and 2 * len(evident) >= len(trained):
            seen = _(
                "no parameter changed in {steps} steps although gradients and the learning rate are not 0 ({names}):"
                " the step of {optimizer} has no effect"
            ).format(steps=needed, names=_names(evident), optimizer=type(optimizer).__name__)
            yield self.alarm("nothing-changes", seen, "nothing-learned", "loss-constant", stops=True)
        self._count_idle(ledger, trained, rows, exists)
        if ledger.idle >= _STREAK:
            seen = _("{optimizer} stepped {count} times while none of its parameters had a gradient").format(
                optimizer=type(optimizer).__name__, count=ledger.idle
            )
            yield self.alarm("no-gradient", seen, "no-gradient", "nothing-learned", stops=True)

    def _count_idle(self, ledger: _Ledger, trained: list[_Row], rows: list[_Row], exists: list[bool]) -> None:
        of_key = {id(row.named.parameter): has for row, has in zip(rows, exists)}
        idle = bool(trained) and not any(of_key[id(row.named.parameter)] for row in trained)
        idle = idle and not any(id(row.named.parameter) in ledger.changed for row in trained)
        ledger.idle = ledger.idle + 1 if idle else 0

    def _single_parameters(self, optimizer: Any, ledger: _Ledger, rows: list[_Row]) -> Iterator[Alarm]:
        """Parameters that stay while others change, under an optimizer that moves every element with a gradient."""
        if not _family(optimizer):
            return
        own = [row for row in rows if row.in_model and row.rate is not None]
        stuck = [row for row in own if ledger.still.get(id(row.named.parameter), 0) >= _STREAK + 1]
        moving = [row for row in own if ledger.still.get(id(row.named.parameter)) == 0]
        if stuck and moving:
            seen = _(
                "{count} of {all} parameters never change although they get gradients and their optimizer steps:"
                " {names}"
            ).format(count=len(stuck), all=len(own), names=_names(stuck))
            yield self.alarm("parameters-do-not-change", seen, "nothing-learned", stops=False)

    def _outside(self, ledger: _Ledger, rows: list[_Row]) -> Iterator[Alarm]:
        """Trainable parameters outside every optimizer, in place of which the optimizer holds some of the same kind."""
        orphans = [
            row
            for row in rows
            if not row.in_model
            and row.named.parameter.requires_grad
            and id(row.named.parameter) not in ledger.with_gradient
        ]
        outside = [row for row in rows if row.rate is None and ledger.still.get(id(row.named.parameter), 0) >= _STREAK]
        replaced = [row for row in outside if any(_alike(row, orphan) for orphan in orphans)]
        own = any(row.in_model and row.rate is not None for row in rows)
        if own and replaced and ledger.looks >= _STREAK:
            seen = _(
                "{names} get gradients but are in no optimizer; the optimizer holds {count} parameters "
                "that are no longer in the model, because they were replaced after the optimizer was "
                "built"
            ).format(names=_names(replaced), count=len(orphans))
            symptoms = ("nothing-learned", "wrong-trainable-parameters")
            yield self.alarm("parameters-outside-optimizer", seen, *symptoms, stops=False)

    def _note(self, ledger: _Ledger, rows: list[_Row]) -> None:
        own = [row for row in rows if row.in_model and row.rate is not None and row.named.parameter.requires_grad]
        changed = sum(id(row.named.parameter) in ledger.changed for row in own)
        without = [row for row in own if id(row.named.parameter) not in ledger.with_gradient]
        rest = f"; {len(without)} had no gradient so far: {_names(without)}" if without else ""
        self.run.notes["parameters"] = f"{changed} of {len(own)} trained parameters that were read changed{rest}"


def _expects_change(row: _Row, gradient: Any, optimizer: Any) -> bool:
    """Whether a step has to change what was read of a parameter, by its gradient, the rate and its precision.

    Outside every optimizer any gradient counts: nothing there changes by itself, and the alarm needs more than that.
    """
    import torch

    if not bool(torch.isfinite(gradient).all()):
        return False
    size = gradient.abs()
    if row.rate is None:
        return bool((size > 0).any())
    precision = torch.finfo(local(row.named.parameter).dtype).eps
    rounding = _ROUNDINGS * precision * row.before.abs()
    family = _family(optimizer)
    if family == "sgd":
        return bool((row.rate * size > rounding + 1e-30).any())
    enough = size >= _LEAST_GRADIENT
    if family == "adam":
        return bool((enough & (_ADAM_SHARE * row.rate > rounding)).any()) and row.rate > 0
    whole = precision <= torch.finfo(torch.float32).eps
    return bool(enough.any()) and whole and row.rate >= _LEAST_RATE


def _family(optimizer: Any) -> str | None:
    """How an optimizer of torch moves an element that has a gradient; None where that is its own affair."""
    if not type(optimizer).__module__.startswith("torch.optim"):
        return None
    return _FAMILIES.get(type(optimizer).__name__)


def _skipped(optimizer: Any) -> bool:
    """Whether a loss scaler made a fused step do nothing."""
    found = getattr(optimizer, "found_inf", None)
    return found is not None and bool(float(found))


def _readable_gradient(gradient: Any) -> Any:
    if gradient is None or gradient.is_sparse or not is_readable(gradient):
        return None
    return gradient


def _alike(row: _Row, orphan: _Row) -> bool:
    """Whether two parameters could stand in the same place: as many dimensions, and one of them as long."""
    first, second = row.named.parameter.shape, orphan.named.parameter.shape
    return len(first) == len(second) and (len(first) < 2 or any(a == b for a, b in zip(first, second)))


def _names(rows: list[_Row]) -> str:
    shown = ", ".join(row.named.name for row in rows[:_MOST_NAMES])
    if len(rows) <= _MOST_NAMES:
        return shown
    return _("{names} and {count} more").format(names=shown, count=len(rows) - _MOST_NAMES)
