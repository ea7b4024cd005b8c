"""Matrix products, forward and backward.

A linear layer with bias, its three products (output, gradient of the input, gradient of the weight), and a batched
product with a transposed operand are compared with float64. The shapes leave a remainder (a tail) in every dimension.
One shape reduces 4096 terms into a small output, which a GPU splits over its cores.

Bound: u |y| for the rounding of the output and 8 sqrt(K) a (|y| + |t|) for the sum of K terms t. On tensor cores, K /
4 replaces 8 sqrt(K) if it is larger (`_criterion.py`; Higham & Mary 2019). The batched product may be rounded before
the bias is added, as on an H200 with torch 2.11, which adds u |y - b|. Baseline: the float32 product, rounded once. A
failure means a product that is wrong, or that rounds values it should not round: inputs cut to TF32 give theta 20 to
30, partial sums kept in 16 bits give 14 to 120.

Settings that permit such an error are no fault. With TF32 on (`torch.backends.cuda.matmul.allow_tf32`), or with
`allow_bf16_reduced_precision_reduction`, `allow_fp16_reduced_precision_reduction` or `allow_fp16_accumulation` on, the
product is measured with the setting as found and again with the setting off. An error that only the first has is
reported as an effect of the setting.

torch 1.13.1 fails on a CPU in bfloat16, and rightly: small products are summed in bfloat16, so that a row of 4096 ones
times a column of ones gives 256, while torch 2.4.1 gives 4096 (compare pytorch#83863).

Request: seed, device, dtype, training (tf32: TF32 is then measured against its own bound).
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Dict, Iterator, List, Tuple

from compatcheck.probes._criterion import (
    TF32_ROUNDOFF,
    UNIT_ROUNDOFF,
    Measuring,
    Request,
    Row,
    Stage,
    Tensor,
    Tensors,
    accumulation,
)
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import (
    Problem,
    control,
    draw,
    dtypes_of,
    gradients,
    place,
    rounded,
    solved,
    trial,
)

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE = "smoke"
SECONDS: float = 0.5

SHAPES = ((1, 5, 7, 64), (1, 33, 65, 257), (1, 8, 16, 4096), (3, 17, 9, 130))
ON_CUDA = ((1, 128, 128, 4096), (1, 257, 129, 1025), (8, 64, 72, 512))
SETTINGS = {
    "float32": ("allow_tf32",),
    "bfloat16": ("allow_bf16_reduced_precision_reduction",),
    "float16": ("allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation"),
}


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each shape, dtype and setting."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    for batch, rows, columns, terms in SHAPES + (ON_CUDA if device == "cuda" else ()):
        case = f"{batch} x {rows} x {columns} x {terms}"
        shapes = {"x": (batch, rows, terms), "w": (batch, columns, terms), "g": (batch, rows, columns)}
        inputs = draw(request, case, **shapes, b=(columns,))
        for dtype in dtypes_of(request, device):
            stage(f"{case} {dtype}")
            cores = device == "cuda" and dtype in ("bfloat16", "float16")
            problem = solved(case, dtype, inputs, _products, partial(_budget, cores=cores))
            yield control(problem, _sums, device)
            yield from _variants(problem, device, request)
    return {"device": device}


def _variants(problem: Problem, device: str, request: Request) -> Iterator[Row]:
    found = _permissive(problem.dtype) if device == "cuda" else []
    if found:
        policy = ", ".join(f"torch.backends.cuda.matmul.{name}" for name in found)
        yield trial(problem, "as set", _candidate, device, policy=policy)
    with _settings(found, False):
        yield trial(problem, "exact settings" if found else "as set", _candidate, device)
    training = request.get("training") or {}
    if device == "cuda" and problem.dtype == "float32" and training.get("tf32") is True:
        with _settings(["allow_tf32"], True):
            budget, baseline = _for_tf32(problem)
            yield trial(problem, "TF32", _candidate, device, budget=budget, baseline=baseline)


def _candidate(problem: Problem, device: str) -> Tensors:
    """A linear layer for one matrix, a batched product with a transposed operand for several."""
    import torch
    import torch.nn.functional as F

    leaves = place(problem.inputs, problem.dtype, device)
    if _is_batched(leaves):
        y = torch.baddbmm(leaves["b"], leaves["x"], leaves["w"].transpose(1, 2))
    else:
        y = F.linear(leaves["x"][0], leaves["w"][0], leaves["b"])[None]
    found = gradients(y, leaves, leaves["g"].detach(), dx="x", dw="w")
    return {"y": y, **found}


def _products(i: Tensors) -> Tensors:
    y = i["x"] @ i["w"].transpose(1, 2) + i["b"]
    return {"y": y, "dx": i["g"] @ i["w"], "dw": i["g"].transpose(1, 2) @ i["x"]}


def _sums(i: Tensors) -> Tensors:
    """The products without a product kernel: multiplied, then summed."""
    x, w, g = i["x"][:, :, None], i["w"][:, None], i["g"][..., None]
    y = (x * w).sum(-1) + i["b"]
    return {"y": y, "dx": (g * w).sum(2), "dw": (g * x).sum(1)}


def _budget(i: Tensors, exact: Tensors, dtype: str, cores: bool) -> Tensors:
    u, a = UNIT_ROUNDOFF[dtype], UNIT_ROUNDOFF["float32"]
    norms = _norms(i)
    terms = {"y": i["x"].shape[-1] + 1, "dx": i["w"].shape[1], "dw": i["x"].shape[1]}
    budget = {
        name: u * exact[name].abs() + accumulation(terms[name], exact[name], norms[name], a, cores) for name in exact
    }
    if _is_batched(i):
        budget["y"] = budget["y"] + u * (exact["y"] - i["b"]).abs()
    return budget


def _is_batched(i: Tensors) -> bool:
    return bool(i["x"].shape[0] > 1)


def _norms(i: Tensors) -> Tensors:
    """The 2-norm of the terms of every element."""
    squares = {name: value.square() for name, value in i.items()}
    return {name: value.sqrt() for name, value in _products(squares).items()}


def _for_tf32(problem: Problem) -> Tuple[Tensors, Tensors]:
    """Budget and baseline where every factor is rounded to TF32: twice 8 u of every term's norm more."""
    norms = _norms(problem.inputs)
    budget = {name: value + 16 * TF32_ROUNDOFF * norms[name] for name, value in problem.budget.items()}
    cut = {name: _cut_to_tf32(value) for name, value in problem.inputs.items()}
    return budget, rounded(_products(cut), problem.dtype)


def _cut_to_tf32(value: Tensor) -> Tensor:
    import torch

    bits = value.float().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def _permissive(dtype: str) -> List[str]:
    """The settings that are on and permit a larger error; torch that lacks one has it off."""
    import torch

    matmul = torch.backends.cuda.matmul
    found = []
    for name in SETTINGS.get(dtype, ()):
        try:
            on = getattr(matmul, name)
        except (AttributeError, RuntimeError):
            continue
        if on is True or isinstance(on, tuple) and on and on[0] is True:
            found.append(name)
    return found


@contextlib.contextmanager
def _settings(names: List[str], value: bool) -> Iterator[None]:
    import torch

    matmul = torch.backends.cuda.matmul
    before = {name: getattr(matmul, name) for name in names}
    for name in names:
        setattr(matmul, name, value)
    try:
        yield
    finally:
        for name in names:
            setattr(matmul, name, before[name])
