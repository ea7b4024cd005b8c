"""Triton kernels, compiled on this machine.

The installed Triton compiles a row-wise RMS norm and a small matrix product, as torch.compile and many training
kernels do. Both run and are compared with float64. The compiler ships its own ptxas, which may be too old for the GPU
or generate code that the driver does not accept (triton-lang/triton#8539). This appears here as an error. The probe
fails if plain torch computes the same on this GPU.

Bound of the norm: |y| (2 u + 8 a sqrt(n) + 6 a). Bound of the product: u |y| and, on tensor cores, max(8 sqrt(K), K /
4) a (|y| + |t|). On a GPU the product is tested only in 16 bits, because Triton multiplies float32 as TF32 by default.
Baseline: torch in float32, rounded, which is also the control.

The probe compiles two kernels, which takes about a second. It runs only in the deep profile and on a GPU; without a
GPU it is skipped. With TRITON_INTERPRET=1 in the environment it runs on the CPU in Triton's interpreter, which does
not support bfloat16.

Request: seed, device, dtype.
"""

from __future__ import annotations

import functools
import os
import subprocess
from typing import Any, Callable, Dict, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Row, Stage, Tensors, accumulation
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, control, draw, dtypes_of, place, solved, worst_of

NEEDS: Dict[str, str] = {"torch": ">=2.0", "triton": ">=2.0"}
TIMEOUT: float = 120.0
PROFILE: str = "deep"
SECONDS: float = 2.0

A = UNIT_ROUNDOFF["float32"]
ROWS, COLUMNS, EPSILON = 9, 1000, 1e-6
INTERPRETED = ("float32", "float16")
SIDE, INNER, BLOCK = 64, 256, 32


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of both kernels in each dtype."""
    import triton

    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    if device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        return {"unsupported": "Triton compiles for GPUs, but none is usable from this interpreter"}
    for dtype in dtypes_of(request, device) if device == "cuda" else INTERPRETED:
        stage(f"norm {dtype}")
        inputs = draw(request, "norm", x=(ROWS, COLUMNS), w=(COLUMNS,))
        problem = solved("RMS norm", dtype, inputs, _norm, _norm_budget)
        yield control(problem, _norm, device)
        yield _row(problem, "a Triton kernel", _normalised, device)
        if device == "cuda" and dtype == "float32":
            continue
        stage(f"product {dtype}")
        inputs = draw(request, "product", a=(SIDE, INNER), b=(INNER, SIDE))
        problem = solved("product", dtype, inputs, _product, functools.partial(_budget, device == "cuda"))
        yield control(problem, _product, device)
        yield _row(problem, "a Triton kernel", _multiplied, device)
    return {"device": device, "triton": {"version": triton.__version__, "ptxas": os.environ.get("TRITON_PTXAS_PATH")}}


def _row(problem: Problem, variant: str, run: Callable[[Problem, str], Tensors], device: str) -> Row:
    """As ``_operator.trial``; the compiler's own errors are faults too."""
    row = {"case": problem.case, "variant": variant, "dtype": problem.dtype}
    try:
        found = {name: value.double().cpu() for name, value in run(problem, device).items()}
    except (RuntimeError, OSError, subprocess.CalledProcessError, *_compiler_errors()) as error:
        return {**row, "error": f"{type(error).__name__}: {_telling(str(error))}"}
    return {**row, **worst_of(found, problem, problem.budget, problem.baseline)}


def _compiler_errors() -> Tuple[Any, ...]:
    """Triton's exceptions, which no release has all of."""
    import triton

    places = (triton, getattr(triton.runtime, "errors", None), getattr(triton.compiler, "errors", None))
    names = ("TritonError", "PTXASError", "OutOfResources", "CompilationError")
    return tuple({getattr(place, name) for place in places for name in names if hasattr(place, name)})


def _telling(text: str) -> str:
    """The line that says why, which ptxas puts among others."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no message"]
    telling = [line for word in ("fatal", "rror") for line in lines if word in line]
    return (telling or lines)[0][:200]


def _normalised(problem: Problem, device: str) -> Tensors:
    import torch

    from compatcheck.probes.operators import _triton_kernels

    i = {name: value.detach() for name, value in place(problem.inputs, problem.dtype, device).items()}
    y = torch.empty_like(i["x"])
    _triton_kernels.normalise[(ROWS,)](i["x"], i["w"], y, COLUMNS, EPSILON, BLOCK=1024)
    return {"y": y}


def _multiplied(problem: Problem, device: str) -> Tensors:
    import torch

    from compatcheck.probes.operators import _triton_kernels

    i = {name: value.detach() for name, value in place(problem.inputs, problem.dtype, device).items()}
    c = torch.empty(SIDE, SIDE, dtype=i["a"].dtype, device=device)
    _triton_kernels.multiply[(1,)](i["a"], i["b"], c, INNER, N=SIDE, BLOCK=BLOCK)
    return {"y": c}


def _norm(i: Tensors) -> Tensors:
    return {"y": i["x"] * (i["x"].square().mean(-1, keepdim=True) + EPSILON).rsqrt() * i["w"]}


def _norm_budget(i: Tensors, exact: Tensors, dtype: str) -> Tensors:
    return {"y": exact["y"].abs() * (2 * UNIT_ROUNDOFF[dtype] + 8 * A * COLUMNS**0.5 + 6 * A)}


def _product(i: Tensors) -> Tensors:
    return {"y": i["a"] @ i["b"]}


def _budget(tensor_cores: bool, i: Tensors, exact: Tensors, dtype: str) -> Tensors:
    norm = (i["a"].square() @ i["b"].square()).sqrt()
    return {"y": UNIT_ROUNDOFF[dtype] * exact["y"].abs() + accumulation(INNER, exact["y"], norm, A, tensor_cores)}
