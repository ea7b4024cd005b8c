"""Layer normalisation, forward and backward.

`layer_norm` is compared with float64, on rows with a mean of 0 and of 300 standard deviations (kappa = |mean| / std),
with widths that leave a remainder (a tail).

Bound: 2 u (|y| + |b|) for the roundings of the output, 8 a sqrt(H) (|y - b| + kappa |w|) for mean and variance of H
numbers, and 8 a (1 + kappa) |y - b| for the subtraction. Gradients: the same errors of the normalised rows and of 1 /
std, carried through r (dy - mean(dy) - n mean(dy n)), and the sums over rows for weight and bias. On a CPU, torch
stores mean and 1 / std for the backward pass in the dtype of the inputs, which adds u (1 + kappa). Baseline: the plain
formula in float32, rounded. rho decides only about the output at mean 0; elsewhere the errors are those of a few
statistics. A failure means statistics in 16 bits instead of float32, a variance by E[x^2] - E[x]^2 (theta 3 to 70 in
float32), or sums over rows in 16 bits.

On a CPU, gradients of weight and bias in 16 bits are summed in 16 bits (torch 2.4.1 and 2.13.0: theta above 1000).
These rows are recorded, and judged only if the request has usage = "parameters_in_16_bits".

torch 1.13.1 fails on a CPU in bfloat16, and rightly: rows with a mean of 300 standard deviations have an error of half
their size (theta 620), but only one rounding in 2.4.1.

Request: seed, device, dtype, usage.
"""

from __future__ import annotations

from functools import partial
from typing import Dict, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Row, Stage, Tensor, Tensors, accumulation
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, control, draw, dtypes_of, narrow_sums, place, solved, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE = "quick"
SECONDS: float = 0.5

SHAPES = ((64, 64), (37, 1000), (16, 4096))
MEANS = (0.0, 300.0)
EPSILON = 1e-5
A = UNIT_ROUNDOFF["float32"]
FEW = ("dx", "dw", "db")
FEW_AT_A_MEAN = ("y", *FEW)


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each shape, mean and dtype."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    for rows, width in SHAPES:
        for mean in MEANS:
            case = f"{rows} x {width}, mean {mean:g} std"
            inputs = draw(request, case, x=(rows, width), w=(width,), b=(width,), g=(rows, width))
            inputs["x"] += mean
            few = FEW_AT_A_MEAN if mean else FEW
            for dtype in dtypes_of(request, device):
                stage(f"{case} {dtype}")
                saved = UNIT_ROUNDOFF[dtype] if device == "cpu" else A
                problem = solved(case, dtype, inputs, _formula, partial(_budget, saved=saved), few)
                yield control(problem, _formula, device)
                yield trial(problem, "layer_norm", _candidate, device, "y", "dx")
                marks: Row = narrow_sums(request, dtype) if device == "cpu" else {}
                yield trial(problem, "its parameters", _candidate, device, "dw", "db", **marks)
    return {"device": device}


def _candidate(problem: Problem, device: str, *tensors: str) -> Tensors:
    import torch.nn.functional as F

    leaves = place(problem.inputs, problem.dtype, device)
    x, w, b = leaves["x"], leaves["w"], leaves["b"]
    y = F.layer_norm(x, w.shape, w, b, EPSILON)
    y.backward(leaves["g"].detach())
    found = {"y": y, "dx": x.grad, "dw": w.grad, "db": b.grad}
    return {name: found[name] for name in tensors}


def _formula(i: Tensors) -> Tensors:
    normal, inverse, _ = _normalised(i["x"])
    dy = i["g"] * i["w"]
    dx = inverse * (dy - dy.mean(-1, keepdim=True) - normal * (dy * normal).mean(-1, keepdim=True))
    return {"y": normal * i["w"] + i["b"], "dx": dx, "dw": (i["g"] * normal).sum(0), "db": i["g"].sum(0)}


def _normalised(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """The rows normalised, 1 / std, and kappa."""
    mean = x.mean(-1, keepdim=True)
    inverse = ((x - mean).square().mean(-1, keepdim=True) + EPSILON).rsqrt()
    return (x - mean) * inverse, inverse, mean.abs() * inverse


def _budget(i: Tensors, exact: Tensors, dtype: str, saved: float) -> Tensors:
    """``saved`` is the roundoff of the statistics kept for the backward."""
    u, g, (rows, width) = UNIT_ROUNDOFF[dtype], i["g"], i["x"].shape
    normal, inverse, kappa = _normalised(i["x"])
    scaled, root = normal * i["w"], width**0.5
    forward = 8 * A * root * (scaled.abs() + kappa * i["w"].abs()) + 8 * A * (1 + kappa) * scaled.abs()
    error = 8 * A * root * (normal.abs() + kappa) + 8 * A * (1 + kappa) * normal.abs()
    error = error + (saved * (normal.abs() + kappa) if saved > A else 0.0)
    relative = 8 * A * (root + 1 + kappa) + (saved if saved > A else 0.0)

    def mean(terms: Tensor, norm: Tensor) -> Tensor:
        return accumulation(width, terms.sum(-1, keepdim=True), norm, A, False) / width

    dy = g * i["w"]
    product = dy * normal
    first = mean(dy, dy.norm(dim=-1, keepdim=True))
    second = mean(product, product.norm(dim=-1, keepdim=True)) + (dy.abs() * error).sum(-1, keepdim=True) / width
    average, slope = dy.mean(-1, keepdim=True), product.mean(-1, keepdim=True)
    rest = 2 * A * (dy.abs() + average.abs() + (normal * slope).abs())
    inner = first + slope.abs() * error + normal.abs() * second + rest
    weighted = (g * normal).norm(dim=0)
    return {
        "y": 2 * u * (exact["y"].abs() + i["b"].abs()) + forward,
        "dx": exact["dx"].abs() * (u + relative) + inverse * inner,
        "dw": u * exact["dw"].abs() + accumulation(rows, exact["dw"], weighted, A, False) + 8 * (g * error).norm(dim=0),
        "db": u * exact["db"].abs() + accumulation(rows, exact["db"], g.norm(dim=0), A, False),
    }
