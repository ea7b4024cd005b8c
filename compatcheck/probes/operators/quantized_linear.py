"""Quantised linear layers of bitsandbytes.

Three parts are distinguished, for NF4 and FP4 and every block size that runs:

quantised: every weight must be the nearest entry of the code book, times the largest magnitude of its block, both read
from the stored bytes. Bound: half the distance of the two entries around it, and 5% for the thresholds written into
the kernels. Baseline: the nearest entries. On normal weights the relative error is 0.092 for NF4 and 0.122 for FP4 in
blocks of 64; the row shows the measured error.

dequantised: `dequantize_4bit` against the same product in float64. Bound: u |w| and 2 a |w|.

layer: `Linear4bit`, output and gradient of the input, with and without double quantisation, for one and for five rows,
against float64 with the weight as stored. Bound: 2 u |y|, 8 u |t| for weights rounded to the dtype, and the
accumulation of K products. Baseline: the float32 product of rounded weights.

`Linear8bitLt` rounds its input to 8 bits by rows. This adds 8 standard deviations of that rounding, 8 / sqrt(12) of a
step times the norm of the weight's row, and float16's rounding of the input.

A failure means that a kernel does not agree with the stored bytes, and not that 4 bits are few. Known: blocks of 4096
used the wrong kernel before bitsandbytes#1160. On CUDA, the probe also fails if the native library for CPUs was
loaded. Two cases are recorded and not judged: 4-bit layers in evaluation on a CPU, which compute in bfloat16 with
every dtype; and a weight whose rows end inside a block (96 columns in blocks of 64), which the AVX-512 kernel
dequantises with the wrong magnitudes (bitsandbytes 0.50.2, relative error 0.25).

Request: seed, device, dtype, blocks (sizes; default 64 to 1024, on CUDA to 4096: beyond 1024 a CPU compiles),
broken_rows (True if in_features of a layer is not a multiple of the block).
"""

from __future__ import annotations

import contextlib
import math
from typing import Dict, Iterator, NamedTuple, Tuple

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Measuring,
    Module,
    Request,
    Row,
    Stage,
    Tensor,
    Tensors,
    accumulation,
    relative_rms,
)
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._bitsandbytes import blockwise, native_library, native_rows
from compatcheck.probes.operators._operator import Problem, attempt, draw, dtypes_of, place, rounded, trial, worst_of

NEEDS: Dict[str, str] = {"torch": ">=1.13", "bitsandbytes": ">=0.42"}
TIMEOUT: float = 120.0
PROFILE: str = "quick"
SECONDS: float = 2.0

A = UNIT_ROUNDOFF["float32"]
KINDS = ("nf4", "fp4")
BLOCKS = {"cpu": (64, 128, 256, 512, 1024), "cuda": (64, 128, 256, 512, 1024, 2048, 4096)}
OUT, IN = 192, 256
STORED, BROKEN_ROWS = (16, 4096), (64, 96)
ROWS = (1, 5)
OUTLIER_THRESHOLD = 6.0
FEW = "few layers have rows that end inside a block; judged only if the request sets broken_rows"
IN_EVALUATION = "in evaluation a CPU computes 4-bit layers in bfloat16"


class Weight(NamedTuple):
    """A quantised weight as the layer would multiply it; ``exact`` is float64 on the CPU."""

    exact: Tensor
    layer: Module


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of the stored weights, of the 4-bit and of the 8-bit layers."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    yield from native_rows(device)
    for dtype in dtypes_of(request, device):
        for kind in KINDS:
            stage(f"{kind} {dtype}")
            for block in request.get("blocks") or BLOCKS[device]:
                yield from _stored(request, kind, int(block), STORED, dtype, device)
            for row in _stored(request, kind, 64, BROKEN_ROWS, dtype, device):
                yield row if request.get("broken_rows") else {**row, "recorded": FEW}
            for double in (False, True):
                yield from _layers(request, kind, double, dtype, device)
        stage(f"int8 {dtype}")
        for threshold in (0.0, OUTLIER_THRESHOLD):
            yield from _eight_bits(request, threshold, dtype, device)
    return {"device": device, "library": native_library()}


def _stored(request: Request, kind: str, block: int, shape: Tuple[int, int], dtype: str, device: str) -> Iterator[Row]:
    """Rows of the quantised and of the dequantised weight."""
    from bitsandbytes import functional as F

    case = f"{kind} in blocks of {block}, rows of {shape[1]}"
    weight = rounded(draw(request, "weight", w=shape), dtype)["w"]
    row = {"case": f"{case}, quantised", "variant": "quantize_4bit", "dtype": dtype}
    narrow = place({"w": weight}, dtype, device)["w"].detach()
    kept: Row = {}

    def quantise() -> Tensors:
        kept["bytes"], kept["state"] = F.quantize_4bit(narrow, blocksize=block, quant_type=kind)
        return {"the weight": _weight_of(kept["bytes"], kept["state"])}

    found, raised = attempt(quantise)
    if raised:
        yield {**row, **raised}
        return
    problem = _nearest(row["case"], dtype, weight, kept["state"].code, block)
    error = relative_rms(found["the weight"], weight)
    yield {**row, **worst_of(found, problem, problem.budget, problem.baseline), "relative_error": error}
    yield trial(problem, "nearest entries", _given, problem.baseline["the weight"], control=True)
    exact = found["the weight"]
    budget = {"the weight": exact.abs() * (UNIT_ROUNDOFF[dtype] + 2 * A)}
    baseline = rounded({"the weight": exact.float()}, dtype)
    problem = Problem(f"{case}, dequantised", dtype, {}, {"the weight": exact}, budget, baseline)
    yield trial(problem, "dequantize_4bit", _dequantised, kept["bytes"], kept["state"])
    yield trial(problem, "plain formula", _given, baseline["the weight"], control=True)


def _given(_: Problem, weight: Tensor) -> Tensors:
    return {"the weight": weight}


def _dequantised(_: Problem, stored: Tensor, state: Tensor) -> Tensors:
    from bitsandbytes import functional as F

    return {"the weight": F.dequantize_4bit(stored, state)}


def _weight_of(stored: Tensor, state: Tensor) -> Tensor:
    """Code book times absmax, from the stored bytes; absmax may be quantised itself."""
    import torch

    pairs = stored.detach().cpu().view(torch.uint8).flatten()
    codes = torch.stack((pairs >> 4, pairs & 15), -1).flatten()
    absmax = state.absmax
    if state.nested:
        inner = state.state2
        absmax = blockwise(absmax, inner.code, inner.absmax, inner.blocksize) + state.offset.double().cpu()
    return blockwise(codes, state.code, absmax, state.blocksize)[: math.prod(state.shape)].reshape(state.shape)


def _nearest(case: str, dtype: str, weight: Tensor, code_book: Tensor, block: int) -> Problem:
    """The weight against which a quantised one is judged, and its nearest entries as baseline."""
    import torch

    entries = code_book.double().cpu().sort().values
    absmax = weight.flatten().reshape(-1, block).abs().amax(-1).repeat_interleave(block).reshape(weight.shape)
    scaled = weight / absmax
    above = torch.bucketize(scaled, entries).clamp(1, len(entries) - 1)
    low, high = entries[above - 1], entries[above]
    nearest = torch.where(scaled - low < high - scaled, low, high) * absmax
    budget = {"the weight": 1.05 * (high - low) / 2 * absmax + 4 * A * weight.abs()}
    return Problem(case, dtype, {}, {"the weight": weight}, budget, {"the weight": nearest})


def _layers(request: Request, kind: str, double: bool, dtype: str, device: str) -> Iterator[Row]:
    """Rows of a 4-bit layer in training and in evaluation."""
    import bitsandbytes
    import torch

    drawn = rounded(draw(request, f"{kind} layer", w=(OUT, IN), b=(OUT,)), dtype)
    narrow = getattr(torch, dtype)
    kept: Row = {}

    def build() -> Tensors:
        layer = bitsandbytes.nn.Linear4bit(IN, OUT, True, narrow, compress_statistics=double, quant_type=kind)
        layer.weight = bitsandbytes.nn.Params4bit(
            drawn["w"].to(narrow), requires_grad=False, compress_statistics=double, quant_type=kind
        )
        layer.bias.data = drawn["b"].to(narrow)
        kept["layer"] = layer.to(device)
        return {"w": _weight_of(layer.weight.data, layer.weight.quant_state)}

    name = f"{kind} layer{', double quantisation' if double else ''}"
    found, raised = attempt(build)
    if raised:
        yield {"case": name, "variant": "Linear4bit", "dtype": dtype, **raised}
        return
    weight = Weight(found["w"], kept["layer"])
    for training in (True, False):
        for rows in ROWS:
            case = f"{name}, {rows} rows, {'training' if training else 'evaluation'}"
            problem = _layer_problem(request, case, dtype, weight, drawn["b"], rows)
            yield trial(problem, "plain product", _plain, weight, device, control=True)
            row = trial(problem, "Linear4bit", _through, weight, device, training)
            yield row if training or device == "cuda" else {"recorded": IN_EVALUATION, **row}


def _layer_problem(request: Request, case: str, dtype: str, weight: Weight, bias: Tensor, rows: int) -> Problem:
    inputs = rounded(draw(request, f"input of {rows} rows", x=(rows, IN), g=(rows, OUT)), dtype)
    inputs["b"], x, g, w, u = bias, inputs["x"], inputs["g"], weight.exact, UNIT_ROUNDOFF[dtype]
    exact = {"y": x @ w.t() + bias, "dx": g @ w}
    norms = {"y": (x.square() @ w.square().t()).sqrt(), "dx": (g.square() @ w.square()).sqrt()}
    tensor_cores = dtype != "float32"
    budget = {
        name: 2 * u * value.abs() + 8 * u * norms[name] + accumulation(IN, value, norms[name], A, tensor_cores)
        for name, value in exact.items()
    }
    budget["y"] = budget["y"] + u * (exact["y"] - bias).abs()
    stored = rounded({"w": w}, dtype)["w"].float()
    plain = {"y": x.float() @ stored.t() + bias.float(), "dx": g.float() @ stored}
    return Problem(case, dtype, inputs, exact, budget, rounded(plain, dtype))


def _plain(problem: Problem, weight: Weight, device: str) -> Tensors:
    """The product with the dequantised weight in float32 on the device, rounded."""
    i = {name: value.float().to(device) for name, value in problem.inputs.items()}
    w = rounded({"w": weight.exact}, problem.dtype)["w"].float().to(device)
    found = {"y": i["x"] @ w.t() + i["b"], "dx": i["g"] @ w}
    return rounded({name: found[name] for name in problem.exact}, problem.dtype)


def _through(problem: Problem, weight: Weight, device: str, training: bool) -> Tensors:
    import torch

    leaves = place({name: problem.inputs[name] for name in ("x", "g")}, problem.dtype, device)
    weight.layer.train(training)
    if not training:
        with torch.no_grad():
            return {"y": weight.layer(leaves["x"].detach())}
    y = weight.layer(leaves["x"])
    y.backward(leaves["g"].detach())
    return {"y": y, "dx": leaves["x"].grad}


def _eight_bits(request: Request, threshold: float, dtype: str, device: str) -> Iterator[Row]:
    """The row of an 8-bit layer; with a threshold one input column is an outlier, which stays in 16 bits."""
    import bitsandbytes
    import torch

    case = f"int8 layer{', one outlier column' if threshold else ''}"
    drawn = rounded(draw(request, "int8 layer", w=(OUT, IN), b=(OUT,), x=(5, IN), g=(5, OUT)), dtype)
    drawn["x"] = drawn["x"].clamp(-4, 4)
    if threshold:
        drawn["x"][:, 7] = 24.0
    kept: Row = {}

    def build() -> Tensors:
        narrow = torch.float16
        layer = bitsandbytes.nn.Linear8bitLt(IN, OUT, True, has_fp16_weights=False, threshold=threshold)
        layer.weight = bitsandbytes.nn.Int8Params(drawn["w"].to(narrow), requires_grad=False, has_fp16_weights=False)
        layer.bias.data = drawn["b"].to(getattr(torch, dtype))
        kept["layer"] = layer.to(device)
        with torch.no_grad():
            layer(drawn["x"].to(device, getattr(torch, dtype)))
        state = layer.state
        return {"w": state.CB.double().cpu() * state.SCB.double().cpu()[:, None] / 127}

    with _quietly():
        found, raised = attempt(build)
        if raised:
            yield {"case": case, "variant": "Linear8bitLt", "dtype": dtype, **raised}
            return
        weight = Weight(found["w"], kept["layer"])
        problem = _eight_bit_problem(case, dtype, drawn, weight)
        rows = [trial(problem, "plain product", _given_y, problem.baseline, control=True)]
        rows.append(trial(problem, "Linear8bitLt", _through, weight, device, True))
    yield from rows


def _given_y(_: Problem, found: Tensors) -> Tensors:
    return found


def _eight_bit_problem(case: str, dtype: str, drawn: Tensors, weight: Weight) -> Problem:
    x, g, w = drawn["x"], drawn["g"], weight.exact
    inlying = x.masked_fill(x.abs() >= OUTLIER_THRESHOLD, 0.0)
    step = inlying.abs().amax(-1, keepdim=True) / 127
    quantised = (inlying / step).round() * step + (x - inlying)
    u = max(UNIT_ROUNDOFF[dtype], UNIT_ROUNDOFF["float16"])
    exact = {"y": x @ w.t() + drawn["b"], "dx": g @ w}
    norms = {"y": (x.square() @ w.square().t()).sqrt(), "dx": (g.square() @ w.square()).sqrt()}
    budget = {name: 3 * u * value.abs() + 8 * u * norms[name] for name, value in exact.items()}
    budget["y"] = budget["y"] + 8 / math.sqrt(12) * step * w.norm(dim=-1) + 2 * u * drawn["b"].abs()
    wide = dtype if dtype != "float32" else "float16"
    baseline = {**rounded({"y": quantised @ w.t() + drawn["b"]}, wide), **rounded({"dx": g @ w}, wide)}
    return Problem(case, dtype, {"x": x, "g": g}, exact, budget, baseline)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """bitsandbytes warns about every input that it casts to float16."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
