"""A small network, its exact gradient, and how far a gradient is from it.

The network is a stack of linear layers, GELU and a layer norm, some 2400 parameters; the loss is the mean squared
error over the global batch, so the gradient of the batch is the mean of those of its equal parts. Weights and data
are drawn in float64 on the CPU and rounded once to the dtype under trial; the exact gradient is that of the rounded
values in float64, the baseline one process of plain torch with the whole batch at that dtype.

A gradient's error is |g - exact| / |exact| in the 2-norm over all parameters together and for each alone, where a
parameter's own norm counts as at least a tenth of its share. theta is that error over 64 u (float32) or 16 u
(bfloat16, float16), u the unit roundoff: some dozens of roundings of a gradient of a few layers. rho is the error
over the larger of the baseline's and u. Healthy stacks gave
theta below 0.23 and rho below 1.9 (100 seeds).
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Dict, NamedTuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Module, Row, Tensor, Tensors, relative_rms

WIDTH, OUTPUTS, BATCH = 32, 8, 16
ROUNDINGS = {"float32": 64.0, "bfloat16": 16.0, "float16": 16.0}

Gradients = Tensors


class Problem(NamedTuple):
    """Data of the global batch in float64, the exact gradient, and that of one process at the dtype."""

    inputs: Tensor
    targets: Tensor
    exact: Gradients
    baseline: Gradients
    dtype: str
    seed: int
    unused: bool
    factor: float


def problem(seed: int, dtype: str, device: str, unused: bool = False, factor: float = 1.0) -> Problem:
    """``unused``: with a layer that takes no part; ``factor`` multiplies the targets, and so the gradient's size."""
    import torch

    narrow = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(seed + 1)
    inputs = torch.randn(BATCH, WIDTH, generator=generator, dtype=torch.float64).to(narrow).double()
    targets = factor * torch.randn(BATCH, OUTPUTS, generator=generator, dtype=torch.float64).to(narrow).double()
    empty = Problem(inputs, targets, {}, {}, dtype, seed, unused, factor)
    exact = _gradient(network(empty).double(), empty, torch.float64, "cpu")
    baseline = _gradient(network(empty).to(narrow), empty, narrow, device)
    return empty._replace(exact=exact, baseline=baseline)


def network(of: Problem) -> Module:
    """A module with float32 parameters that the dtype holds exactly."""
    import torch

    generator = torch.Generator().manual_seed(of.seed)
    model = bare(of)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            value = drawn / math.sqrt(WIDTH) + (1.0 if name == "norm.weight" else 0.0)
            parameter.copy_(value.to(getattr(torch, of.dtype)))
    return model


def bare(of: Problem) -> Module:
    """The module, its parameters as torch initialises them."""
    import torch

    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
            self.norm, self.last = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, OUTPUTS)
            if of.unused:
                self.unused = torch.nn.Linear(WIDTH, WIDTH)

        def forward(self, value: Tensor) -> Tensor:
            value = self.norm(torch.nn.functional.gelu(self.first(value)))
            return self.last(torch.tanh(self.second(value)))

    return Network()


def part(of: Problem, number: int, parts: int, device: str) -> Tensor:
    """Inputs and targets of one of ``parts`` equal parts of the global batch, at the dtype."""
    import torch

    rows = slice(number * BATCH // parts, (number + 1) * BATCH // parts)
    narrow = getattr(torch, of.dtype)
    return of.inputs[rows].to(device, narrow), of.targets[rows].to(device, narrow)


def loss_of(model: Module, data: Tensor) -> Tensor:
    import torch

    wide = torch.float64 if data[1].dtype == torch.float64 else torch.float32
    return (model(data[0]).to(wide) - data[1].to(wide)).pow(2).mean()


def _gradient(model: Module, of: Problem, dtype: Any, device: str) -> Gradients:
    model = model.to(device)
    loss_of(model, (of.inputs.to(device, dtype), of.targets.to(device, dtype))).backward()
    return gradients(model)


def gradients(model: Module) -> Gradients:
    """As float64 on the CPU; zero for a parameter that got none."""
    import torch

    found = {}
    for name, parameter in model.named_parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        found[name] = gradient.detach().double().cpu()
    return found


def compare(found: Gradients, of: Problem) -> Row:
    """theta, rho and the parameter that is worst, with the size of the whole gradient over the exact one's."""
    import torch

    nonfinite = {name: int((~torch.isfinite(value)).sum()) for name, value in found.items()}
    if any(nonfinite.values()):
        worst = max(nonfinite, key=lambda name: nonfinite[name])
        return {"tensor": worst, "theta": math.inf, "rho": math.inf, "nonfinite": nonfinite[worst], "ratio": math.nan}
    roundoff = UNIT_ROUNDOFF[of.dtype]
    whole = float(_flat(of.exact).norm())
    share = 0.1 * whole / math.sqrt(len(of.exact))
    errors, usual = _errors(found, of, share), _errors(of.baseline, of, share)
    tensor = max(errors, key=lambda name: errors[name])
    theta = errors[tensor] / (ROUNDINGS[of.dtype] * roundoff)
    rho = errors[tensor] / max(*usual.values(), roundoff)
    ratio = float(_flat(found).norm()) / whole
    return {"tensor": tensor, "theta": theta, "rho": rho, "nonfinite": 0, "ratio": ratio}


def _errors(found: Gradients, of: Problem, share: float) -> Dict[str, float]:
    """Relative, of all parameters together and of each, whose own norm counts as ``share`` at least."""
    errors = {"all parameters": relative_rms(_flat(found), _flat(of.exact))}
    for name, exact in of.exact.items():
        errors[name] = float((found[name] - exact).norm()) / max(float(exact.norm()), share)
    return errors


def answer(found: Gradients, of: Problem) -> Row:
    """What a rank says of its gradients."""
    return {"measured": compare(found, of), "control": compare(of.baseline, of), "digest": digest(found)}


def digest(found: Gradients) -> str:
    """Equal on two ranks exactly where every bit is."""
    return hashlib.sha256(_flat(found).numpy().tobytes()).hexdigest()


def _flat(of: Gradients) -> Tensor:
    import torch

    return torch.cat([of[name].flatten() for name in sorted(of)])
