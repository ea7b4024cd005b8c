"""The AdamW optimizers of bitsandbytes, with 8-bit and 32-bit state, paged and unpaged.

8-bit state is stored as entries of a code book times the largest magnitude of each block of 256. This costs accuracy
by design, about one percent of ten updates, so whole trajectories show little. Therefore each of three steps is judged
by itself: the moments are read from the stored bytes before the step, the step is repeated from them in float64 with
the same given gradient, and the stored result is compared.
Bound of the parameters: 2 u |p| and 8 a lr times the terms of the step. With decay, lr * decay times the step is
added, because some kernels decay before the step and some after it. Bound of an 8-bit moment: the distance of the two
entries around it (half for rounding, half for kernels that keep the sign), and 2^-15 of the block's largest magnitude,
because the CPU kernel finds entries by 16 bits. Bound of a 32-bit moment: 4 a of its terms. Baseline: the step by the
plain formula in float32, which is the control, and for moments the nearest entries or half the bound. A failure means
that a kernel applies a different step than its own state requires, or stores a different state.

On CUDA, the probe also fails if bitsandbytes loaded its CPU library (bitsandbytes-foundation/bitsandbytes#719).
Gradients with a transposed memory layout were read in the wrong order before bitsandbytes#1187. They are recorded, and
judged only if the request sets transposed_gradients. A fact that is not judged: the distance of ten steps with 8-bit
state from float64, relative to the update.

Request: seed, device, dtype (of the parameters), transposed_gradients.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Measured,
    Measuring,
    Request,
    Row,
    Stage,
    Tensor,
    Tensors,
    relative_rms,
)
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._bitsandbytes import blockwise, native_library, native_rows
from compatcheck.probes.operators._operator import Problem, attempt, draw, dtypes_of, rounded, trial, worst_of

NEEDS: Dict[str, str] = {"torch": ">=1.13", "bitsandbytes": ">=0.42"}
TIMEOUT: float = 120.0
PROFILE: str = "quick"
SECONDS: float = 1.5

A = UNIT_ROUNDOFF["float32"]
VARIANTS = ("AdamW8bit", "PagedAdamW8bit", "AdamW", "PagedAdamW")
LR, BETA1, BETA2, EPSILON, DECAY = 1e-2, 0.9, 0.999, 1e-8, 0.1
STEPS, LONG, BLOCK = 3, 10, 256
LOOKUP = 2.0**-15
SHAPE = (96, 64)
UNCOMMON = (
    "the backward pass stores gradients in the layout of their parameters; judged only if "
    "the request sets transposed_gradients"
)


class State(NamedTuple):
    """Parameter and moments as stored, float64 on the CPU."""

    parameter: Tensor
    first_moment: Tensor
    second_moment: Tensor


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one optimiser, dtype and step each; then the facts."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    yield from native_rows(device)
    for dtype in dtypes_of(request, device):
        for name in VARIANTS:
            for decay in (0.0, DECAY):
                stage(f"{name} {dtype}")
                yield from _steps(request, name, decay, dtype, device, False)
            for row in _steps(request, name, 0.0, dtype, device, True):
                yield row if request.get("transposed_gradients") else {**row, "recorded": UNCOMMON}
    stage("facts")
    drifts = {name: _drift(request, name, device) for name in VARIANTS[:1]}
    return {"device": device, "library": native_library(), "facts": {"off_after_ten_steps": drifts}}


def _gradients(request: Request, dtype: str, steps: int) -> List[Tensor]:
    return [rounded(draw(request, f"gradient {number}", g=SHAPE), dtype)["g"] for number in range(steps)]


def _optimizer(request: Request, name: str, decay: float, dtype: str, device: str) -> Tuple[Any, Any]:
    import bitsandbytes
    import torch

    start = rounded({"p": 0.1 * draw(request, "start", p=SHAPE)["p"]}, dtype)["p"]
    parameter = torch.nn.Parameter(start.to(device, getattr(torch, dtype), copy=True))
    made = getattr(bitsandbytes.optim, name)
    return parameter, made([parameter], lr=LR, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=decay)


def _steps(request: Request, name: str, decay: float, dtype: str, device: str, transposed: bool) -> Iterator[Row]:
    """Rows of every step of one optimiser, each from the state the last one left."""
    parameter, optimizer = _optimizer(request, name, decay, dtype, device)
    suffix = f"{', decay' if decay else ''}{', transposed gradients' if transposed else ''}"
    for number, gradient in enumerate(_gradients(request, dtype, STEPS), 1):
        before = _state(parameter, optimizer)

        def step(gradient: Tensor = gradient) -> Tensors:
            _step(parameter, optimizer, gradient, device, transposed)
            return dict(_state(parameter, optimizer)._asdict())

        row = {"case": f"{name}, step {number}{suffix}", "variant": name, "dtype": dtype}
        found, raised = attempt(step)
        if raised:
            yield {**row, **raised}
            return
        problem = _problem(row["case"], dtype, before, gradient, number, decay, optimizer.state[parameter])
        yield {**row, **worst_of(found, problem, problem.budget, problem.baseline)}
        yield trial(problem, "plain formula", _plainly, device, before, gradient, number, decay, control=True)


def _step(parameter: Tensor, optimizer: Any, gradient: Tensor, device: str, transposed: bool) -> None:
    import torch

    parameter.grad = gradient.to(device, parameter.dtype, copy=True)
    if transposed:
        parameter.grad = parameter.grad.t().contiguous().t()
    optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()


def _state(parameter: Tensor, optimizer: Any) -> State:
    """The moments are 0 before the first step."""
    import torch

    p = parameter.detach().double().cpu()
    state = optimizer.state.get(parameter) or {}
    if "state1" not in state:
        return State(p, torch.zeros_like(p), torch.zeros_like(p))
    moments = []
    for number in "12":
        stored = state[f"state{number}"]
        if stored.dtype == torch.uint8:
            stored = blockwise(stored, state[f"qmap{number}"], state[f"absmax{number}"], BLOCK)
        moments.append(stored.detach().double().cpu().reshape(p.shape))
    return State(p, *moments)


def _next(before: State, g: Tensor, number: int, decay: float) -> State:
    """One step; decay before it."""
    m, v = BETA1 * before.first_moment + (1 - BETA1) * g, BETA2 * before.second_moment + (1 - BETA2) * g * g
    root = (1 - BETA2**number) ** 0.5
    step = LR * root / (1 - BETA1**number) * m / (v.sqrt() + EPSILON * root)
    return State(before.parameter * (1 - LR * decay) - step, m, v)


def _problem(case: str, dtype: str, before: State, g: Tensor, number: int, decay: float, stored: Measured) -> Problem:
    """The exact step from a stored state, and the budgets of what is stored after it."""
    exact = _next(before, g, number, decay)
    terms = State(before.parameter, before.first_moment.abs(), before.second_moment)
    size = (_next(terms, g.abs(), number, 0.0).parameter - before.parameter).abs()
    u = UNIT_ROUNDOFF[dtype]
    budget = {"parameter": 2 * u * exact.parameter.abs() + (8 * A + u + LR * decay) * size}
    baseline = {"parameter": _next(State(*(value.float() for value in before)), g.float(), number, decay).parameter}
    for name, key in (("first_moment", "1"), ("second_moment", "2")):
        value = getattr(exact, name)
        budget[name] = 4 * A * (getattr(before, name).abs() + (g.abs() if key == "1" else g * g))
        baseline[name] = value + budget[name] / 2
        if f"qmap{key}" in stored:
            gap, nearest = _around(value, stored[f"qmap{key}"])
            budget[name] = budget[name] + gap
            baseline[name] = nearest
    return Problem(case, dtype, {}, dict(exact._asdict()), budget, {**rounded(baseline, dtype), **_wide(baseline)})


def _wide(baseline: Tensors) -> Tensors:
    """The moments, which no dtype of parameters narrows."""
    return {name: value.double() for name, value in baseline.items() if name != "parameter"}


def _around(value: Tensor, code_book: Tensor) -> Tuple[Tensor, Tensor]:
    """Budget of storing a moment by the entries of a code book, and the nearest entries."""
    import torch

    entries = code_book.double().cpu().sort().values
    absmax = value.flatten().reshape(-1, BLOCK).abs().amax(-1).repeat_interleave(BLOCK).reshape(value.shape)
    scaled = value / absmax
    above = torch.bucketize(scaled, entries).clamp(1, len(entries) - 1)
    low, high = entries[above - 1], entries[above]
    return (high - low + LOOKUP) * absmax, torch.where(scaled - low < high - scaled, low, high) * absmax


def _plainly(problem: Problem, device: str, before: State, g: Tensor, number: int, decay: float) -> Tensors:
    """The step by the formula in float32 on the device; its parameters alone are compared."""
    found = _next(State(*(value.float().to(device) for value in before)), g.float().to(device), number, decay)
    return rounded({"parameter": found.parameter}, problem.dtype)


def _drift(request: Request, name: str, device: str) -> Tensor:
    """Distance of ten float32 steps from those of float64, relative to the update; why where they cannot run."""
    parameter, optimizer = _optimizer(request, name, 0.0, "float32", device)
    exact = start = _state(parameter, optimizer)

    def run() -> Tensors:
        nonlocal exact
        for number, gradient in enumerate(_gradients(request, "float32", LONG), 1):
            _step(parameter, optimizer, gradient, device, False)
            exact = _next(exact, gradient, number, 0.0)
        return {"parameter": parameter}

    found, raised = attempt(run)
    return raised.get("error") or relative_rms(found["parameter"] - start.parameter, exact.parameter - start.parameter)
