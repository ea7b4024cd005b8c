"""A training run of some steps in miniature, its exact course, and how far another course is from it.

The network is a stack of residual linear layers, a dozen parameters of 256 elements with their biases, so that buckets
of 300 elements fill and swap all through every backward pass. Each step has a batch of its own; the optimiser is SGD
with momentum, which, unlike Adam, does not blow rounding up. The exact course is that of one process in float64, the
baseline that of one process of plain torch at the dtype under trial, its parameters kept in float32.

A course is compared by the size of its gradient in each step, |n - exact| / exact, and by where its parameters end:
|p - exact| over the way the exact ones went, in the 2-norm, to which what float32 rounds off the parameters themselves
is added: a clipped run goes a short way. theta is the largest over 64 u (float32) or 16 u (16 bits),
u the unit roundoff; rho is over the larger of the baseline's error and u.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Dict, List, NamedTuple, Optional

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measured, Module, Row, Tensor, Tensors
from compatcheck.probes.distributed._ranks._toy import ROUNDINGS

WIDTH, DEPTH, ROWS = 16, 12, 2
RATE, MOMENTUM, STEPS = 0.05, 0.9, 6
BUCKET = 300

Parameters = Tensors


class Course(NamedTuple):
    """The gradient's size in each step, None where it is not told, and the parameters at the end in float64."""

    sizes: List[Optional[float]]
    end: Parameters


class Trial(NamedTuple):
    """Data of all steps in float64 by step and part, where parameters begin, and two courses of one process."""

    inputs: Tensor
    targets: Tensor
    dtype: str
    clip: float
    start: Parameters
    exact: Course
    baseline: Course


def trial(seed: int, dtype: str, parts: int, clip: float, device: str) -> Trial:
    """``parts`` micro-batches make a step; gradients are clipped to a norm of ``clip``, 0 for not at all."""
    import torch

    narrow = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(seed + 1)
    drawn = torch.randn(2, STEPS, parts, ROWS, WIDTH, generator=generator, dtype=torch.float64).to(narrow).double()
    model = network(seed, dtype)
    start = {name: value.detach().double().clone() for name, value in model.named_parameters()}
    nothing = Course([], {})
    empty = Trial(drawn[0], drawn[1], dtype, clip, start, nothing, nothing)
    exact = _one_process(empty, torch.float64, torch.float64, "cpu")
    baseline = _one_process(empty, narrow, torch.float32, device)
    return empty._replace(exact=exact, baseline=baseline)


def network(seed: int, dtype: str) -> Module:
    """A module with float32 parameters that the dtype holds exactly."""
    import torch

    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)])

        def forward(self, value: Tensor) -> Tensor:
            for layer in self.layers:
                value = value + torch.tanh(layer(value)) / 2
            return value

    generator = torch.Generator().manual_seed(seed)
    model = Network()
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / math.sqrt(WIDTH)
            parameter.copy_(drawn.to(getattr(torch, dtype)))
    return model


def loss_of(model: Module, of: Trial, step: int, part: int, device: str) -> Tensor:
    """The loss of one micro-batch; a step's gradient is the mean over its parts."""
    import torch

    found = model(of.inputs[step][part].to(device, getattr(torch, of.dtype))).float()
    return (found - of.targets[step][part].to(device, torch.float32)).pow(2).mean()


def _one_process(of: Trial, dtype: Any, master: Any, device: str) -> Course:
    import torch

    model = network(0, of.dtype).to(device, dtype)
    kept = {name: value.to(device, master) for name, value in of.start.items()}
    momenta = {name: torch.zeros_like(value) for name, value in kept.items()}
    sizes: List[Optional[float]] = []
    for step in range(STEPS):
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(kept[name])
                parameter.grad = None
        inputs, targets = (each[step].flatten(0, 1).to(device) for each in (of.inputs, of.targets))
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        (model(inputs.to(dtype)).to(wide) - targets.to(wide)).pow(2).mean().backward()
        gradients = {name: parameter.grad.to(master) for name, parameter in model.named_parameters()}
        size = float(_flat(gradients).norm())
        sizes.append(size)
        shrink = min(1.0, of.clip / (size + 1e-6)) if of.clip else 1.0
        for name, gradient in gradients.items():
            momenta[name] = MOMENTUM * momenta[name] + gradient * shrink
            kept[name] = kept[name] - RATE * momenta[name]
    return Course(sizes, {name: value.double().cpu() for name, value in kept.items()})


def answer(found: Course, of: Trial) -> Measured:
    """What a rank says of the course it took."""
    digest = hashlib.sha256(_flat(found.end).cpu().numpy().tobytes()).hexdigest()
    return {"measured": _compared(found, of), "control": _compared(of.baseline, of), "digest": digest}


def _compared(found: Course, of: Trial) -> Row:
    errors, usual = _errors(found, of), _errors(of.baseline, of)
    sizes = {"sizes": found.sizes, "exact_sizes": of.exact.sizes}
    lost = [name for name, error in errors.items() if not math.isfinite(error)]
    if lost:
        return {"tensor": lost[0], "theta": math.inf, "rho": math.inf, "nonfinite": len(lost), **sizes}
    roundoff = UNIT_ROUNDOFF[of.dtype]
    worst = max(errors, key=lambda name: errors[name])
    theta = errors[worst] / (ROUNDINGS[of.dtype] * roundoff)
    return {
        "tensor": worst,
        "theta": theta,
        "rho": errors[worst] / max(*usual.values(), roundoff),
        "nonfinite": 0,
        **sizes,
    }


def _errors(found: Course, of: Trial) -> Dict[str, float]:
    """Of the gradient's size in each step that told it, and of the parameters at the end."""
    errors = {
        "the gradient's size in step %d" % (step + 1): abs(size - exact) / exact
        for step, (size, exact) in enumerate(zip(found.sizes, of.exact.sizes))
        if size is not None and exact is not None
    }
    end = _flat(of.exact.end)
    way = (end - _flat(of.start)).norm() + _rounded_away(of.dtype) * end.norm()
    errors["the parameters after %d steps" % STEPS] = float((_flat(found.end) - end).norm() / way)
    return errors


def _rounded_away(dtype: str) -> float:
    """What float32 rounds off the parameters in all steps, in units of the bound on their way."""
    return STEPS * UNIT_ROUNDOFF["float32"] / (ROUNDINGS[dtype] * UNIT_ROUNDOFF[dtype])


def _flat(of: Parameters) -> Tensor:
    import torch

    return torch.cat([of[name].flatten() for name in sorted(of)])
