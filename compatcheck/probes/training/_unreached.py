"""Parameters that the model's own code keeps from learning: the loss depends on them and no gradient reaches them.

A detached block has no gradient in float64 either, so nothing that is compared with the float64 model shows it.
What shows it is the loss: it is computed with the parameter moved to either side by a step and by half of it. Where
the gradient is zero and the two differences are as 2 to 1, the loss has a slope that the gradient lacks. A parameter
that the loss does not depend on (a head that is not used), or only in jumps (a choice of experts), is not told.
"""

from __future__ import annotations

import zlib
from typing import Iterator, List, Mapping, Sequence

from compatcheck.probes._criterion import Module, Row, Tensor
from compatcheck.probes.training._exact import float64_everywhere
from compatcheck.probes.training._passes import Pass
from compatcheck.probes.training._recipe import trainable

MOST = 12
STEP = 2.0**-13
LEAST = 1e-11
CASE, CODE, DIFFERENCES = "gradients in float64", "the model's code", "finite differences of the loss"


def unreached(model: Module, exact: Pass, batches: Sequence[Mapping[str, Tensor]], seed: int) -> Iterator[Row]:
    """A row that fails and its control where parameters are kept from learning; none where every one learns.

    ``exact`` is the pass of float64 ``batches``. Of parameters without a gradient, the first MOST are tried.
    """
    import torch

    parameters = trainable(model)
    silent = [name for name, gradient in exact.gradients.items() if not bool(gradient.any())][:MOST]
    with float64_everywhere(), torch.no_grad():
        found = [name for name in silent if _slopes(model, name, parameters[name], batches, seed)]
    if not found:
        return
    row = {"case": CASE, "dtype": "float64", "tensor": f"gradient of {found[0]}", "rho": 0.0, "nonfinite": 0}
    named = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    says = f"{named} gets no gradient, not even in float64, although the loss depends on it"
    yield {**row, "variant": CODE, "theta": float("inf"), "lost": found, "says": says}
    yield {**row, "variant": DIFFERENCES, "control": True, "theta": 0.0}


def _slopes(model: Module, name: str, parameter: Tensor, batches: Sequence[Mapping[str, Tensor]], seed: int) -> bool:
    """Whether the loss changes with the parameter, and twice as much over twice the step."""
    import torch

    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} slope {name}".encode()))
    direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(parameter.device)
    direction *= STEP * max(float(parameter.abs().max()), STEP)
    before, changes = parameter.detach().clone(), []
    for size in (1.0, 0.5):
        ends: List[float] = []
        for sign in (1.0, -1.0):
            parameter.copy_(before + sign * size * direction)
            ends.append(_loss(model, batches))
        changes.append(ends[0] - ends[1])
    parameter.copy_(before)
    whole, half = changes
    return abs(whole) > LEAST and abs(whole - 2 * half) < 0.1 * abs(whole)


def _loss(model: Module, batches: Sequence[Mapping[str, Tensor]]) -> float:
    """The sum over the tokens predicted; not the model's own."""
    import torch

    total = 0.0
    for batch in batches:
        logits = model(**{key: value for key, value in batch.items() if key != "labels"}).logits
        targets = batch["labels"][:, 1:].reshape(-1)
        total += float(
            torch.nn.functional.cross_entropy(
                logits[:, :-1].reshape(len(targets), -1), targets, ignore_index=-100, reduction="sum"
            )
        )
    return total
