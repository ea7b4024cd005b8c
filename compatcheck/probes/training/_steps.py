"""A few optimiser steps on batches that come again: the loss stays finite and falls, and weights move.

AdamW is written out here as well, so that an optimiser is not judged by itself alone.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from compatcheck.probes._criterion import Module, Row, Tensor
from compatcheck.probes.training._batches import on
from compatcheck.probes.training._recipe import SGD_RATE, Recipe, computing, optimizer_of, trainable

ROUNDS = 3
WRITTEN_OUT = "AdamW written out"
BETA1, BETA2, EPSILON, DECAY = 0.9, 0.999, 1e-8, 0.01


class Descent(NamedTuple):
    """Mean loss of each round over the same batches, which parameters stayed as they were, which are not finite.

    ``left_out`` names those that stayed though half a step along their gradient would have changed them.
    """

    losses: List[float]
    parameters: int
    unmoved: List[str]
    left_out: List[str]
    nonfinite: List[str]
    optimizer: str

    @property
    def drop(self) -> float:
        """How far the loss fell from the first round to the last."""
        return self.losses[0] - self.losses[-1]


class WrittenOut:
    """AdamW by plain operations, with the two methods of an optimiser that ``descend`` calls."""

    def __init__(self, parameters: List[Tensor], rate: float) -> None:
        self.parameters, self.rate, self.steps = parameters, rate, 0
        self.moments: Dict[int, Tuple[Tensor, Tensor]] = {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """One step of every parameter that has a gradient."""
        self.steps += 1
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            value, gradient = parameter.data, parameter.grad
            m, v = self.moments.get(number) or (0.0 * gradient, 0.0 * gradient)
            m, v = BETA1 * m + (1 - BETA1) * gradient, BETA2 * v + (1 - BETA2) * gradient * gradient
            self.moments[number] = m, v
            size = (v / (1 - BETA2**self.steps)).sqrt() + EPSILON
            step = self.rate * (m / (1 - BETA1**self.steps) / size + DECAY * value)
            value.copy_(value - step)


def descend(
    model: Module,
    recipe: Recipe,
    batches: Sequence[Mapping[str, Tensor]],
    device: str = "cpu",
    optimizer: Optional[WrittenOut] = None,
) -> Descent:
    """ROUNDS rounds of one optimiser step a batch. Raises Unbuildable where the optimiser is not to be had here.

    ``optimizer`` takes the place of the recipe's.
    """
    import torch

    parameters = trainable(model)
    before = {name: value.detach().clone() for name, value in parameters.items()}
    name, chosen = WRITTEN_OUT, optimizer
    if chosen is None:
        chosen, name = optimizer_of(recipe, list(parameters.values()))
    scaler = _scaler(device) if recipe.scaler else None
    losses: List[float] = []
    first: Row = {}
    for _ in range(ROUNDS):
        found = []
        for batch in batches:
            chosen.zero_grad(set_to_none=True)
            with computing(recipe, device):
                loss = model(**on(dict(batch), device)).loss
            (scaler.scale(loss) if scaler else loss).backward()
            if recipe.max_grad_norm > 0:
                if scaler:
                    scaler.unscale_(chosen)
                torch.nn.utils.clip_grad_norm_(list(parameters.values()), recipe.max_grad_norm)
            scale = scaler.get_scale() if scaler and not recipe.max_grad_norm > 0 else 1.0
            first = first or _gradients(parameters, scale)
            if scaler:
                scaler.step(chosen)
                scaler.update()
            else:
                chosen.step()
            found.append(float(loss.detach()))
        losses.append(sum(found) / len(found))
    moved = {key: bool((value.detach() != before[key]).any()) for key, value in parameters.items()}
    infinite = [key for key, value in parameters.items() if not bool(value.detach().isfinite().all())]
    unmoved = [key for key, changed in moved.items() if not changed]
    left_out = [key for key in unmoved if key in first and _would_move(before[key], first[key], recipe)]
    return Descent(losses, len(moved), unmoved, left_out, infinite, name)


def scored(descent: Descent, control: Descent) -> Row:
    """theta 0 where the loss falls at least half as far as the control's, 2 where it falls less, 8 where it does not.

    Values that are not finite, a model of which no parameter moved, and one left out of every step give infinity.
    """
    lost = sum(not math.isfinite(loss) for loss in descent.losses)
    row: Row = {"tensor": "loss", "rho": 0.0, "nonfinite": lost, "losses": descent.losses}
    row.update(unmoved=descent.unmoved[:8], optimizer=descent.optimizer)
    if lost or descent.nonfinite:
        named = descent.nonfinite[0] if descent.nonfinite else "loss"
        return {**row, "tensor": named, "nonfinite": max(lost, len(descent.nonfinite)), "theta": math.inf}
    if len(descent.unmoved) == descent.parameters:
        return {**row, "tensor": "every step", "theta": math.inf, "says": "no optimizer step changes any parameter"}
    if descent.left_out:
        named = ", ".join(descent.left_out[:3])
        says = f"no optimizer step changes {named}, although half a step along the gradient would change it"
        return {**row, "tensor": f"step of {named}", "theta": math.inf, "left_out": descent.left_out[:8], "says": says}
    theta = 0.0 if descent.drop >= control.drop / 2 else 2.0 if descent.drop > 0 else 8.0
    return {**row, "theta": theta}


def _gradients(parameters: Mapping[str, Tensor], scale: float) -> Row:
    """Copies of the gradients; none at all where one is not finite, as a scaler then leaves the step out."""
    found = {name: value.grad.detach() / scale for name, value in parameters.items() if value.grad is not None}
    return found if all(bool(gradient.isfinite().all()) for gradient in found.values()) else {}


def _would_move(value: Tensor, gradient: Tensor, recipe: Recipe) -> bool:
    """Whether half of the first step changes the value in its own dtype: a small step is lost in 16 bits."""
    step = gradient.float() * SGD_RATE
    if recipe.optimizer != "sgd":
        step = recipe.learning_rate * gradient.float() / (gradient.float().abs() + EPSILON)
    return bool(((value.float() - step / 2).to(value.dtype) != value).any())


def _scaler(device: str) -> Any:
    """A gradient scaler for the device, or None where this torch has none for it."""
    import torch

    if device != "cpu":
        return torch.cuda.amp.GradScaler()
    with contextlib.suppress(AttributeError, TypeError):
        return torch.amp.GradScaler("cpu", init_scale=1024.0)
    return None
