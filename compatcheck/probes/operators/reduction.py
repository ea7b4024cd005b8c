"""Sums, means and norms of many numbers.

`sum` and `mean` of 2^18 numbers are tested: over all numbers, over the last and over the first dimension, of a strided
view, and backwards through a broadcast addition (the gradient of a bias). The 2-norm that gradient clipping uses is
tested too.

Bound: u |y| for the rounding of the output and 8 sqrt(n) a (|y| + |t|) for n terms t. The norm has half the relative
error of its sum of squares. Baseline: the float32 reduction, rounded. A failure means a sum that is accumulated in the
16 bits of the inputs (theta 11 to 33, rho 8 to 28), or terms that are missing.

torch 1.13.1 fails on a CPU in bfloat16 (2-norm of a strided view, theta 200); 2.4.1 does not.

Request: seed, device, dtype.
"""

from __future__ import annotations

from typing import Dict

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Stage, Tensor, Tensors, accumulation
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, control, draw, dtypes_of, place, solved, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE = "quick"
SECONDS: float = 0.5

ROWS, COLUMNS = 2048, 128
A = UNIT_ROUNDOFF["float32"]
FEW = ("all", "mean", "norm")


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each kind of numbers, dtype and reduction."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    for case in ("zero mean", "positive"):
        inputs = draw(request, case, x=(ROWS, COLUMNS))
        if case == "positive":
            inputs["x"] = inputs["x"].abs() / 8
        for dtype in dtypes_of(request, device):
            stage(f"{case} {dtype}")
            problem = solved(case, dtype, inputs, _formula, _budget, FEW)
            yield control(problem, _pairwise_sum, device)
            yield trial(problem, "sum, mean and norm", _candidate, device, False)
            yield trial(problem, "of a strided view", _candidate, device, True)
    return {"device": device}


def _candidate(problem: Problem, device: str, strided: bool) -> Tensors:
    """The reductions; ``strided`` takes every other column of a wider tensor."""
    import torch

    x = place(problem.inputs, problem.dtype, device)["x"].detach()
    if strided:
        wide = torch.full((ROWS, 2 * COLUMNS), 7.0, dtype=x.dtype, device=device)
        wide[:, ::2] = x
        x = wide[:, ::2]
    bias = torch.zeros(COLUMNS, dtype=x.dtype, device=device, requires_grad=True)
    (torch.zeros_like(x) + bias).backward(x)
    return {**_formula({"x": x}), "bias": bias.grad}


def _formula(i: Tensors) -> Tensors:
    import torch

    x = i["x"]
    return {
        "all": x.sum(),
        "last": x.sum(-1),
        "first": x.sum(0),
        "mean": x.mean(),
        "bias": x.sum(0),
        "norm": torch.linalg.vector_norm(x),
    }


def _pairwise_sum(i: Tensors) -> Tensors:
    """The same by halving and adding: another order of summation."""
    x = i["x"]
    first, last = _halved(x), _halved(x.transpose(0, 1))
    total = _halved(first[:, None])[0]
    squares = _halved(_halved(x.square())[:, None])[0]
    return {
        "all": total,
        "last": last,
        "first": first,
        "mean": total / x.numel(),
        "bias": first,
        "norm": squares.sqrt(),
    }


def _halved(x: Tensor) -> Tensor:
    """The sum over the first dimension, whose length is a power of two."""
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        x = x[:half] + x[half:]
    return x[0]


def _budget(i: Tensors, exact: Tensors, dtype: str) -> Tensors:
    u, x = UNIT_ROUNDOFF[dtype], i["x"]

    def bound(name: str, terms: int, norm: Tensor) -> Tensor:
        return u * exact[name].abs() + accumulation(terms, exact[name], norm, A, False)

    total = bound("all", x.numel(), x.norm())
    first = bound("first", ROWS, x.norm(dim=0))
    squares = accumulation(x.numel(), exact["norm"].square(), x.square().norm(), A, False)
    return {
        "all": total,
        "last": bound("last", COLUMNS, x.norm(dim=-1)),
        "first": first,
        "mean": total / x.numel() + A * exact["mean"].abs(),
        "bias": first,
        "norm": u * exact["norm"] + squares / (2 * exact["norm"]) + 2 * A * exact["norm"],
    }
