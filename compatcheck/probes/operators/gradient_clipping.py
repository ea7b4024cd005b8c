"""Gradient clipping by the total norm.

`torch.nn.utils.clip_grad_norm_` clips to 1.0 over gradients of several shapes and of very different sizes: one tensor
at a time and with foreach, in one dtype and with two dtypes mixed, with the 2-norm and the largest element, and with
parameters that have no gradient. The returned norm and the resulting gradients are compared with float64. If the norm
is below the limit, the gradients must not change.

Bound of the norm: a sum of n squares has 8 sqrt(n) a (|s| + |squares|), half of this relative to the norm, and 5 u of
the norm for norms stored in the gradients' dtype, the norm of norms and its root. Bound of a gradient: the same
relative error and 3 u more (coefficient, product) of its size, and 1e-6 for the constant in the divisor. Baseline: the
formula in float32, rounded. For the norm, where the rounding of one number decides, the bound is used instead. A
failure means a norm over only a part of the gradients, a coefficient from another norm, or terms squared in 16 bits.

If one gradient contains an inf, the documented result is useless: every finite gradient becomes 0 and the inf becomes
NaN, without a warning (pytorch#46849). The probe reports this as a fact and does not judge it. The same holds for a
finite float16 gradient whose norm is above 65504 and therefore inf. The probe does judge that error_if_nonfinite=True
raises an error.

Request: seed, device, dtype.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Measuring,
    Request,
    Row,
    Settings,
    Stage,
    Tensor,
    Tensors,
    accumulation,
)
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, draw, dtypes_of, rounded, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE: str = "quick"
SECONDS: float = 0.3

A = UNIT_ROUNDOFF["float32"]
LIMIT, DIVISOR_CONSTANT = 1.0, 1e-6
SHAPES: Dict[str, Tuple[int, ...]] = {"embedding": (257, 64), "weight": (64, 65), "bias": (65,), "scale": (1,)}
SIZES = {"embedding": 0.05, "weight": 0.3, "bias": 3.0, "scale": 10.0}
CASES = {"2-norm": (2.0, 1.0), "2-norm below the limit": (2.0, 1e-3), "largest element": (math.inf, 1.0)}
WIDE = ("bias", "scale")


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one norm, dtype and way to compute it each; then the facts."""
    from torch.nn.utils import clip_grad_norm_

    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    ways: Dict[str, Row] = {"default": {}}
    if "foreach" in inspect.signature(clip_grad_norm_).parameters:
        ways.update({"one by one": {"foreach": False}, "foreach": {"foreach": True}})
    for dtype in dtypes_of(request, device):
        for mixed in (False, True)[: 1 if dtype == "float32" else 2]:
            for case, (kind, size) in CASES.items():
                stage(f"{case} {dtype}")
                drawn = draw(request, case, **SHAPES)
                gradients = {name: size * SIZES[name] * value for name, value in drawn.items()}
                name = case + ", float32 gradients among them" if mixed else case
                problem = _problem(name, dtype, kind, gradients, WIDE if mixed else ())
                yield from _rows(problem, kind, device, ways, mixed)
    stage("an inf")
    yield _norm_of_inf(device)
    for way, options in ways.items():
        yield _raises(device, way, options)
    stage("facts")
    return {"device": device, "facts": _facts(device)}


def _rows(problem: Problem, kind: float, device: str, ways: Mapping[str, Settings], mixed: bool) -> Iterator[Row]:
    yield trial(problem, "plain formula", _plain, kind, device, control=True)
    for way, options in ways.items():
        yield trial(problem, way, _clipped, kind, device, options, mixed)


def _problem(case: str, dtype: str, kind: float, gradients: Tensors, wide: Tuple[str, ...]) -> Problem:
    """Exact norm and clipped gradients of gradients rounded to the dtype, those named in ``wide`` to float32."""
    inputs = {**rounded(gradients, dtype), **rounded({name: gradients[name] for name in wide}, "float32")}
    u, norm = UNIT_ROUNDOFF[dtype], _norm(inputs, kind)
    squares = _flat(inputs).square()
    total = squares.sum()
    relative = 5 * u + accumulation(squares.numel(), total, squares.norm(), A, False) / (2 * total)
    exact = {"norm": norm, **_scaled(inputs, norm)}
    budget = {name: value.abs() * (relative + 3 * u) for name, value in exact.items()}
    baseline = {name: value + budget[name] / 2 for name, value in exact.items()}
    return Problem(case, dtype, inputs, exact, budget, baseline)


def _flat(tensors: Tensors) -> Tensor:
    import torch

    return torch.cat([value.flatten() for value in tensors.values()])


def _norm(gradients: Tensors, kind: float) -> Tensor:
    values = _flat(gradients)
    return values.abs().max() if kind == math.inf else values.square().sum().sqrt()


def _scaled(gradients: Tensors, norm: Tensor) -> Tensors:
    coefficient = (LIMIT / (norm + DIVISOR_CONSTANT)).clamp(max=1.0)
    return {name: value * coefficient for name, value in gradients.items()}


def _plain(problem: Problem, kind: float, device: str) -> Tensors:
    """The formula in float32 on the device, rounded."""
    narrow = {name: value.float().to(device) for name, value in problem.inputs.items()}
    norm = _norm(narrow, kind)
    return rounded({"norm": norm, **_scaled(narrow, norm)}, problem.dtype)


def _clipped(problem: Problem, kind: float, device: str, options: Settings, mixed: bool) -> Tensors:
    from torch.nn.utils import clip_grad_norm_

    parameters = {
        name: _parameter(value, "float32" if mixed and name in WIDE else problem.dtype, device)
        for name, value in problem.inputs.items()
    }
    without = _parameter(problem.inputs["bias"], problem.dtype, device)
    without.grad = None
    norm = clip_grad_norm_([without, *parameters.values()], LIMIT, norm_type=kind, **options)
    return {"norm": norm, **{name: parameter.grad for name, parameter in parameters.items()}}


def _parameter(gradient: Tensor, dtype: str, device: str) -> Tensor:
    import torch

    parameter = torch.zeros(gradient.shape, dtype=getattr(torch, dtype), device=device, requires_grad=True)
    parameter.grad = gradient.to(device, parameter.dtype, copy=True)
    return parameter


def _with_inf(device: str) -> List[Tensor]:
    import torch

    parameters = [_parameter(torch.ones(size), "float32", device) for size in (5, 3)]
    parameters[0].grad[2] = math.inf
    return parameters


def _inf_row(variant: str, **marks: Any) -> Row:
    row = {"case": "an inf with error_if_nonfinite", "variant": variant, "dtype": "float32", "tensor": "the norm"}
    return {**row, "theta": 0.0, "rho": 0.0, "nonfinite": 0, **marks}


def _norm_of_inf(device: str) -> Row:
    """The control: the plain formula sees that the norm is not finite."""
    seen = _norm({str(index): one.grad for index, one in enumerate(_with_inf(device))}, 2.0).item()
    return _inf_row("plain formula", theta=0.0 if seen == math.inf else math.inf, control=True)


def _raises(device: str, way: str, options: Settings) -> Row:
    """theta 0 where error_if_nonfinite raises as documented, an error where it is silent."""
    from torch.nn.utils import clip_grad_norm_

    try:
        clip_grad_norm_(_with_inf(device), LIMIT, error_if_nonfinite=True, **options)
    except RuntimeError as error:
        if "non-finite" not in str(error):
            raise
        return _inf_row(way)
    return _inf_row(way, error="nothing, although the norm is inf")


def _facts(device: str) -> Row:
    """What is left of gradients with an inf, and of a finite float16 gradient of norm 1e5."""
    import torch
    from torch.nn.utils import clip_grad_norm_

    parameters = _with_inf(device)
    clip_grad_norm_(parameters, LIMIT)
    facts = {"inf_becomes": parameters[0].grad[2].item(), "the_rest_becomes": parameters[1].grad[0].item()}
    large = _parameter(torch.full((10000,), 1000.0), "float16", device)
    try:
        norm = clip_grad_norm_([large], LIMIT)
    except RuntimeError as error:  # torch 1.13 has no float16 for it on the CPU
        if "not implemented" not in str(error):
            raise
        return facts
    return {**facts, "float16_norm_of_1e5": norm.item(), "float16_gradient_becomes": large.grad[0].item()}
