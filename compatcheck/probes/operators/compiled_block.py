"""torch.compile of a small transformer block, forward and backward.

Two RMS norms that share one scale-and-shift table, causal attention and a gated MLP are compiled with the default
backend, in float32 and under autocast to bfloat16. The output and every gradient are compared with float64. The same
function in eager mode is the control. Each part has a known fault: two norms with one table had a shared gradient that
inductor left half written (pytorch#193061); autocast of embeddings and norms is from pytorch#191433;
`diagonal_scatter`, a case of its own, had a gradient of zero (pytorch#182012).

Bound: C u (|y| + rms y) for every element, with C = 128 in float32 and 32 in 16 bits. This is not a sum of rounding
bounds. It allows for about ten roundings in a row and was calibrated on healthy CPU stacks, which stay below 0.5.
Baseline: the eager function in the same dtype, the control. A failure means that compiling changes the numbers.

Compiling takes 20 to 60 seconds and needs a C++ compiler, on CUDA also Triton. Without these the probe is skipped.

Request: seed, device, dtype (bfloat16 adds the block entirely in bfloat16).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Any, Callable, Dict, Mapping, NamedTuple, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Stage, Tensor, Tensors
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, attempt, draw, place, rounded, worst_of

NEEDS: Dict[str, str] = {"torch": ">=2.1"}
TIMEOUT: float = 600.0
PROFILE: str = "deep"
SECONDS: float = 40.0
ASKED_BY: Tuple[str, ...] = ("training.torch_compile",)

BATCH, LENGTH, WIDTH, HEADS, INNER = 2, 65, 128, 4, 192
ROUNDINGS = {"float32": 128, "bfloat16": 32}
SHAPES: Dict[str, Tuple[int, ...]] = {
    "x": (BATCH, LENGTH, WIDTH),
    "table": (4, WIDTH),
    "qkv": (WIDTH, 3 * WIDTH),
    "merge": (WIDTH, WIDTH),
    "gate": (WIDTH, INNER),
    "up": (WIDTH, INNER),
    "down": (INNER, WIDTH),
}
MATRICES = ("qkv", "merge", "gate", "up", "down")
SCATTERED: Dict[str, Tuple[int, ...]] = {"x": (8, 8), "diagonal": (8,)}

Function = Callable[..., Any]


class Case(NamedTuple):
    """A function, the shapes of its arguments by name, and how it runs; autocast keeps float32 arguments."""

    name: str
    function: Function
    shapes: Mapping[str, Tuple[int, ...]]
    dtype: str
    autocast: bool = False


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of the compiled and of the eager function in each case."""
    import torch

    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    lacking = _lacking(device)
    if lacking:
        return {"unsupported": lacking}
    cases = [
        Case("diagonal_scatter", _scatter, SCATTERED, "float32"),
        Case("block", _block, SHAPES, "float32"),
        Case("block under autocast", _block, SHAPES, "bfloat16", autocast=True),
    ]
    if request.get("dtype") == "bfloat16":
        cases.append(Case("block", _block, SHAPES, "bfloat16"))
    for case in cases:
        stage(f"compiling {case.name} {case.dtype}")
        problem, inputs = _problem(request, case, device)
        row = {"case": case.name, "dtype": case.dtype}
        eager = worst_of(problem.baseline, problem, problem.budget, problem.baseline)
        yield {**row, "variant": "eager", "control": True, **eager}
        torch._dynamo.reset()
        compiled = torch.compile(case.function, dynamic=False)
        found, raised = attempt(lambda c=case, f=compiled, i=inputs: _run(c, f, i, device))  # type: ignore[misc]
        yield {**row, "variant": "compiled", **(raised or worst_of(found, problem, problem.budget, problem.baseline))}
    return {"device": device}


def _lacking(device: str) -> str:
    """What torch.compile would miss here."""
    if not any(map(shutil.which, (os.environ.get("CXX") or "g++", "clang++", "c++"))):
        return "torch.compile needs a C++ compiler, but none is on the path"
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        return "torch.compile needs Triton on CUDA, and it is not installed"
    return ""


def _problem(request: Request, case: Case, device: str) -> Tuple[Problem, Tensors]:
    """Exact values of a case with the eager ones as baseline, and its inputs."""
    stored = "float32" if case.autocast else case.dtype
    drawn = draw(request, case.function.__name__, upstream=case.shapes["x"], **case.shapes)
    # Matrices of a linear layer's size, so that every stage has numbers of order 1.
    scaled = {name: value / value.shape[0] ** 0.5 if name in MATRICES else value for name, value in drawn.items()}
    inputs = rounded(scaled, stored)
    plain = case._replace(autocast=False, dtype="float64")
    exact = _run(plain, case.function, inputs, "cpu")
    u = UNIT_ROUNDOFF[case.dtype]
    budget = {
        name: ROUNDINGS[case.dtype] * u * (value.abs() + value.square().mean().sqrt()) for name, value in exact.items()
    }
    eager = {name: value.double().cpu() for name, value in _run(case, case.function, inputs, device).items()}
    return Problem(case.name, case.dtype, inputs, exact, budget, eager), inputs


def _run(case: Case, function: Function, inputs: Tensors, device: str) -> Tensors:
    """Output and gradients of all arguments."""
    import contextlib

    import torch

    leaves = place(inputs, "float32" if case.autocast else case.dtype, device)
    upstream = leaves.pop("upstream").detach()
    mixed = torch.autocast(device, dtype=torch.bfloat16) if case.autocast else contextlib.nullcontext()
    with mixed:
        out = function(**leaves)
    out.backward(upstream.to(out.dtype))
    return {"out": out.detach(), **{f"d{name}": leaf.grad for name, leaf in leaves.items()}}


def _scatter(x: Tensor, diagonal: Tensor) -> Tensor:
    import torch

    return torch.diagonal_scatter(x * x, diagonal * 2)


def _block(x: Tensor, table: Tensor, qkv: Tensor, merge: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """Attention and MLP with residuals; the norms take the first two and the last two rows of one table."""
    from torch.nn.functional import scaled_dot_product_attention, silu

    heads = (BATCH, LENGTH, HEADS, WIDTH // HEADS)
    q, k, v = (part.reshape(heads).transpose(1, 2) for part in (_norm(x, table[0], table[1]) @ qkv).split(WIDTH, -1))
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)
    x = x + mixed @ merge
    inner = _norm(x, table[0] + table[2], table[1] + table[3])
    return x + (silu(inner @ gate) * (inner @ up)) @ down


def _norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    root = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    return x * root * (1 + scale / 4) + shift / 4
