"""Softmax and log-softmax over a vocabulary, forward and backward.

`softmax` and `log_softmax` are tested on rows of 32000 and 151936 columns and on one row of 130, in the dtype of the
inputs and, as models do it, in float32 with a rounded result.

Bound, with d the distance of a logit below the largest: u y for the rounding of the output, relative errors a (2 d +
4) of exp and its argument, and 8 a sqrt(V) of the denominator, in which all terms are positive. The gradient y (g -
sum g y) may use the stored, rounded y, which adds u of it, and 8 u |g y| for the sum. log-softmax: a (8 + 8 sqrt(V))
(|lse| + max |x|); its gradient is exp of the stored result, off by u |y|. Baseline: the plain formula in float32,
rounded. A failure means a sum or an exponential that is computed in 16 bits, or columns that are missing: a softmax
entirely in bfloat16 gives theta 18.

Request: seed, device, dtype.
"""

from __future__ import annotations

from typing import Dict

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Row, Stage, Tensor, Tensors, accumulation
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, control, draw, dtypes_of, place, solved, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE = "quick"
SECONDS: float = 1.0

SHAPES = ((7, 130), (3, 32000), (1, 151936))
SPREAD = 4.0
A = UNIT_ROUNDOFF["float32"]
STORED = "torch rounds intermediate results to 16 bits on a CPU"


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each shape, function, dtype and way to compute it."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    for rows, columns in SHAPES:
        for name in ("softmax", "log_softmax"):
            case = f"{name} of {rows} x {columns}"
            inputs = draw(request, case, x=(rows, columns), g=(rows, columns))
            inputs["x"] *= SPREAD
            for dtype in dtypes_of(request, device):
                stage(f"{case} {dtype}")
                formula = _softmax if name == "softmax" else _log_softmax
                bounds = _softmax_budget if name == "softmax" else _log_softmax_budget
                problem = solved(case, dtype, inputs, formula, bounds, ("y", "dx"))
                yield control(problem, formula, device)
                marks: Row = {"recorded": STORED} if _stored_narrowly(device, name, dtype) else {}
                yield trial(problem, f"{name} in its dtype", _candidate, device, name, dtype, **marks)
                if dtype != "float32":
                    yield trial(problem, f"{name} in float32", _candidate, device, name, "float32")
    return {"device": device}


def _stored_narrowly(device: str, name: str, dtype: str) -> bool:
    return device == "cpu" and name == "log_softmax" and dtype != "float32"


def _candidate(problem: Problem, device: str, name: str, inside: str) -> Tensors:
    import torch
    import torch.nn.functional as F

    leaves = place(problem.inputs, problem.dtype, device)
    y = getattr(F, name)(leaves["x"], dim=-1, dtype=getattr(torch, inside)).to(leaves["x"].dtype)
    y.backward(leaves["g"].detach())
    return {"y": y, "dx": leaves["x"].grad}


def _softmax(i: Tensors) -> Tensors:
    exponentials = (i["x"] - i["x"].amax(-1, keepdim=True)).exp()
    y = exponentials / exponentials.sum(-1, keepdim=True)
    return {"y": y, "dx": y * (i["g"] - (i["g"] * y).sum(-1, keepdim=True))}


def _log_softmax(i: Tensors) -> Tensors:
    shifted = i["x"] - i["x"].amax(-1, keepdim=True)
    y = shifted - shifted.exp().sum(-1, keepdim=True).log()
    return {"y": y, "dx": i["g"] - y.exp() * i["g"].sum(-1, keepdim=True)}


def _softmax_budget(i: Tensors, exact: Tensors, dtype: str) -> Tensors:
    u, y, g, columns = UNIT_ROUNDOFF[dtype], exact["y"], i["g"], i["x"].shape[-1]
    relative = _relative_error(i["x"])
    terms = g * y
    total, norm = terms.sum(-1, keepdim=True), terms.norm(dim=-1, keepdim=True)
    common = relative.amax(-1, keepdim=True) * total.abs() + 8 * u * norm
    inner = accumulation(columns, total, norm, A, False) + common + 2 * A * (g.abs() + total.abs())
    return {"y": y * (u + relative), "dx": exact["dx"].abs() * (2 * u + relative) + y * inner}


def _log_softmax_budget(i: Tensors, exact: Tensors, dtype: str) -> Tensors:
    u, x, y, g = UNIT_ROUNDOFF[dtype], i["x"], exact["y"], i["g"]
    columns = x.shape[-1]
    lse = x.logsumexp(-1, keepdim=True)
    error = A * (8 + 8 * columns**0.5) * (lse.abs() + x.abs().amax(-1, keepdim=True))
    total, norm = g.sum(-1, keepdim=True), g.norm(dim=-1, keepdim=True)
    absolute = u * y.abs() + error
    inner = y.exp() * (accumulation(columns, total, norm, A, False) + total.abs() * (absolute + 8 * A))
    return {"y": absolute, "dx": u * exact["dx"].abs() + inner + 2 * A * g.abs()}


def _relative_error(x: Tensor) -> Tensor:
    depth = x.amax(-1, keepdim=True) - x
    return A * (2 * depth + 4) + 8 * A * x.shape[-1] ** 0.5
