"""Root-mean-square normalisation, forward and backward.

`F.rms_norm` (torch 2.4 and later) and the formula of transformers' models are tested. That formula computes the
statistics in float32, rounds the normalised row and then multiplies by the weight. The rows have size 1 and size 0.01,
where epsilon has an effect.

Bound: |y| (2 u + 8 a sqrt(H) + 6 a): two roundings, the sum of H squares, and the rest. Gradients: 2 u more for the
normalised row and for dy w, which may be stored in the narrow dtype, through r (dy - n mean(dy n)); for the weight, 8
u |g n| and the sum over rows. rho does not decide about the weight. Baseline: the plain formula in float32, rounded. A
failure means statistics in 16 bits or a different epsilon (1e-5 instead of 1e-6 gives theta 6 in bfloat16 and 1400 in
float32).

F.rms_norm of torch 2.4 is x * rsqrt(mean(x ** 2) + eps) * w in the dtype of x, with each step rounded to this dtype
(its outputs equal this formula in bfloat16 bit for bit; pytorch#133085 changed it). Its error of theta 1.6 in bfloat16
is therefore recorded, and judged only if the request sets usage fused_rms_norm; transformers does not call it.

Request: seed, device, dtype, config (rms_norm_eps), usage.
"""

from __future__ import annotations

from functools import partial
from typing import Callable, Dict

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Measured,
    Measuring,
    Request,
    Stage,
    Tensor,
    Tensors,
    accumulation,
    verdict,
)
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, control, draw, dtypes_of, place, solved, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE = "quick"
SECONDS: float = 0.5

SHAPES = ((64, 64), (37, 1000), (16, 4096))
SIZES = (1.0, 0.01)
A = UNIT_ROUNDOFF["float32"]
FEW = ("dw",)
NARROW_STATISTICS = "torch 2.4 computes F.rms_norm in the dtype of its input; judged only if usage is fused_rms_norm"


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each shape, size, dtype and implementation."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    epsilon = float((request.get("config") or {}).get("rms_norm_eps") or 1e-6)

    def formula(i: Tensors) -> Tensors:
        return _formula(i, epsilon)

    for rows, width in SHAPES:
        for size in SIZES:
            case = f"{rows} x {width}, size {size:g}"
            inputs = draw(request, case, x=(rows, width), w=(width,), g=(rows, width))
            inputs["x"] *= size
            for dtype in dtypes_of(request, device):
                stage(f"{case} {dtype}")
                problem = solved(case, dtype, inputs, formula, partial(_budget, epsilon=epsilon), FEW)
                yield control(problem, formula, device)
                row = trial(problem, "F.rms_norm", _candidate, device, _fused, epsilon)
                yield {"recorded": NARROW_STATISTICS, **row} if _by_release(row, request) else row
                yield trial(problem, "as transformers", _candidate, device, _eager, epsilon)
    return {"device": device}


def _by_release(row: Measured, request: Request) -> bool:
    """Whether the row is what torch 2.4 does in 16 bits, and the request does not ask for it."""
    import torch

    narrow = torch.__version__.startswith("2.4.") and row["dtype"] != "float32" and "theta" in row
    asked = request.get("usage") == "fused_rms_norm"
    return narrow and not asked and verdict(row["theta"], row["rho"]) == "watch"


def _candidate(
    problem: Problem, device: str, function: Callable[[Tensor, Tensor, float], Tensor], epsilon: float
) -> Tensors:
    leaves = place(problem.inputs, problem.dtype, device)
    y = function(leaves["x"], leaves["w"], epsilon)
    y.backward(leaves["g"].detach())
    return {"y": y, "dx": leaves["x"].grad, "dw": leaves["w"].grad}


def _fused(x: Tensor, w: Tensor, epsilon: float) -> Tensor:
    import torch.nn.functional as F

    return F.rms_norm(x, w.shape, w, epsilon)


def _eager(x: Tensor, w: Tensor, epsilon: float) -> Tensor:
    wide = x.float()
    normal = wide * (wide.pow(2).mean(-1, keepdim=True) + epsilon).rsqrt()
    return w * normal.to(x.dtype)


def _formula(i: Tensors, epsilon: float) -> Tensors:
    inverse = (i["x"].square().mean(-1, keepdim=True) + epsilon).rsqrt()
    normal, dy = i["x"] * inverse, i["g"] * i["w"]
    dx = inverse * (dy - normal * (dy * normal).mean(-1, keepdim=True))
    return {"y": normal * i["w"], "dx": dx, "dw": (i["g"] * normal).sum(0)}


def _budget(i: Tensors, exact: Tensors, dtype: str, epsilon: float) -> Tensors:
    u, g, (rows, width) = UNIT_ROUNDOFF[dtype], i["g"], i["x"].shape
    inverse = (i["x"].square().mean(-1, keepdim=True) + epsilon).rsqrt()
    normal, dy = i["x"] * inverse, g * i["w"]
    relative = 8 * A * width**0.5 + 6 * A
    product = dy * normal
    norm, slope = product.norm(dim=-1, keepdim=True), product.mean(-1, keepdim=True)
    error = accumulation(width, product.sum(-1, keepdim=True), norm, A, False) + 16 * u * norm
    inner = u * dy.abs() + normal.abs() * (error / width + slope.abs() * (u + 2 * relative)) + 4 * A * dy.abs()
    weighted = (g * normal).norm(dim=0)
    return {
        "y": exact["y"].abs() * (2 * u + relative),
        "dx": exact["dx"].abs() * (2 * u + relative) + inverse * inner,
        "dw": u * exact["dw"].abs()
        + accumulation(rows, exact["dw"], weighted, A, False)
        + 8 * (2 * u + relative) * weighted,
    }
