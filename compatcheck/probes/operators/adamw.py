"""AdamW in each of its implementations.

torch has several implementations of AdamW: one parameter at a time (for loop), all at once (foreach), one kernel
(fused) and, on CUDA, capturable. The version of torch and the device decide which one a script gets. Each
implementation takes five steps with the same given gradients. The parameters are compared with the recurrence of the
documentation in float64, with decoupled decay. The gradients are given and not computed, because Adam turns the
rounding noise of a near-zero gradient into whole steps.
Gradients with a transposed memory layout are also tested. The fused CPU kernel of torch 2.4.1 to 2.13.0 reads them in
the wrong order; on CUDA it refuses them (pytorch#106951). The backward pass itself gives gradients the layout of their
parameters. This row is therefore recorded, and judged only if the request sets transposed_gradients.
In float32, a GradScaler whose third gradient contains an inf is tested too. This step must not change the parameters
or the step count (pytorch#95781, #96755).

Bound, summed over the steps s: 2 u |p| + u (6 |step| + 3 s lr), where u is the unit roundoff of the parameters' dtype.
It allows for two roundings of the parameter, six of the step, and three of each moment in every earlier step. Fused
and capturable keep the step count in float32, where 1 - beta^s cancels. With a as the unit roundoff of float32, this
adds a |step| (s / 2 + 1) (1 / (1 - beta1^s) + 1 / 2 (1 - beta2^s)) for each step.
A failure means an error of more than 4 times this bound, or of more than 4 times the error of the control. The control
is the recurrence written out in the same dtype and with the same corrections. Healthy CPU stacks stay below 1.

Facts that are not judged, because they are arithmetic and no fault: float16 parameters with a zero gradient become
NaN, because epsilon 1e-8 is 0 in float16; a bfloat16 weight of 1.0 does not change in 50 steps of 1e-3.

Request: seed, device, dtype (of the parameters; default float32 and bfloat16, on CUDA also float16),
transposed_gradients (True if the training sets gradients itself).
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Row, Stage, Tensor
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, draw, dtypes_of, rounded, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE: str = "smoke"
SECONDS: float = 0.5

LR, DECAY, BETA1, BETA2, EPSILON = 1e-2, 5.0, 0.9, 0.999, 1e-8
STEPS = 5
SHAPES: Dict[str, Tuple[int, ...]] = {"matrix": (65, 33), "vector": (1025,), "small": (7,), "square": (64, 64)}
VARIANTS: Dict[str, Dict[str, bool]] = {
    "default": {},
    "for loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "capturable": {"capturable": True},
}
PARAMETERS = "the parameters"
FLOAT32_STEPS = ("fused", "capturable")
LOST_STEP = 2
TRANSPOSED = "transposed gradients"
UNCOMMON = (
    "the backward pass stores gradients in the layout of their parameters; judged only if "
    "the request sets transposed_gradients"
)


class Given(NamedTuple):
    """Start and gradients, float64 on the CPU and already rounded; ``gradients`` holds one list a step."""

    start: List[Tensor]
    gradients: List[List[Tensor]]
    dtype: str
    device: str
    layout: str


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one layout, dtype and implementation each; then the facts."""
    import torch

    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    not_run: Dict[str, str] = {}
    for dtype in dtypes_of(request, device):
        for layout in ("contiguous", TRANSPOSED):
            stage(f"{layout} {dtype}")
            uncommon = layout == TRANSPOSED and not request.get("transposed_gradients")
            given = _draw(request, dtype, device, layout)
            yield from _rows(layout, given, _torch_step, not_run, {"fused": UNCOMMON} if uncommon else {})
    stage("gradient scaler")
    if _grad_scaler(device) is None:
        not_run["gradient scaler"] = f"torch {torch.__version__} has no such implementation for {device}"
    else:
        given = _draw(request, "float32", device, "contiguous")
        yield from _rows("an inf under a GradScaler", given, _scaled_torch_step, not_run, {})
    stage("facts")
    return {"device": device, "facts": _facts(device), "not_run": not_run}


def _draw(request: Request, dtype: str, device: str, layout: str) -> Given:
    """Gradients of at least 0.5, whose squares times 1 - beta2 float16 can hold."""
    start = rounded({name: 0.1 * value for name, value in draw(request, "start", **SHAPES).items()}, dtype)
    gradients = []
    for number in range(STEPS):
        drawn = draw(request, f"gradients {number}", **SHAPES)
        moved = {name: value + 0.5 * value.sign() for name, value in drawn.items()}
        gradients.append(list(rounded(moved, dtype).values()))
    return Given(list(start.values()), gradients, dtype, device, layout)


def _rows(
    case: str,
    given: Given,
    run: Callable[[Given, Mapping[str, bool]], List[Tensor]],
    not_run: Dict[str, str],
    recorded: Mapping[str, str],
) -> Iterator[Row]:
    """One row an implementation, and the control; ``recorded`` says which are not judged, and why."""
    steps = given.gradients
    if run is _scaled_torch_step:
        steps = [step for number, step in enumerate(steps) if number != LOST_STEP]
    exact, budget, cancelled = _exact(given, steps)
    baseline = {PARAMETERS: _flat(_written_out(given, steps, "cpu"))}
    problem = Problem(case, given.dtype, {}, {PARAMETERS: exact}, {PARAMETERS: budget}, baseline)
    in_float32 = {
        "budget": {PARAMETERS: budget + cancelled},
        "baseline": {PARAMETERS: _flat(_written_out(given, steps, "cpu", float32_steps=True))},
    }
    yield trial(problem, "written out", _parameters, _written_out, given, steps, given.device, control=True)
    for variant, options in VARIANTS.items():
        why = _lacking(given, options)
        if why:
            not_run[variant] = why
            continue
        bounds = in_float32 if variant in FLOAT32_STEPS else {}
        row = trial(problem, variant, _parameters, run, given, options, **bounds)
        yield {"recorded": recorded[variant], **row} if variant in recorded else row


def _lacking(given: Given, options: Mapping[str, bool]) -> str:
    """Why this torch or device has no such implementation."""
    if options.get("capturable") and given.device == "cpu":
        return "this implementation needs CUDA"
    try:
        _optimizer(given, options)
    except (RuntimeError, TypeError, ValueError) as error:
        return str(error).split("\n")[0][:160]
    return ""


def _parameters(_: Problem, run: Callable[..., List[Tensor]], *arguments: Any) -> Row:
    return {PARAMETERS: _flat(run(*arguments))}


def _flat(tensors: List[Tensor]) -> Tensor:
    import torch

    return torch.cat([tensor.detach().double().cpu().flatten() for tensor in tensors])


def _exact(given: Given, steps: List[List[Tensor]]) -> Tuple[Tensor, Tensor, Tensor]:
    """The recurrence in float64, the budget of its end and what steps counted in float32 add to it, all flat."""
    import torch

    p = _flat(given.start)
    m, v, budget, cancelled = (torch.zeros_like(p) for _ in range(4))
    u, a = UNIT_ROUNDOFF[given.dtype], UNIT_ROUNDOFF["float32"]
    for number, gradients in enumerate(steps, 1):
        g = _flat(gradients)
        m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
        denominator = (v / (1 - BETA2**number)).sqrt() + EPSILON
        step = LR / (1 - BETA1**number) * m / denominator
        p = p * (1 - LR * DECAY) - step
        budget = budget + 2 * u * p.abs() + u * (6 * step.abs() + 3 * number * LR)
        lost = (number / 2 + 1) * (1 / (1 - BETA1**number) + 0.5 / (1 - BETA2**number))
        cancelled = cancelled + a * lost * step.abs()
    return p, budget, cancelled


def _written_out(given: Given, steps: List[List[Tensor]], device: str, float32_steps: bool = False) -> List[Tensor]:
    """The recurrence by plain operations in the parameters' dtype."""
    import torch

    def correction(beta: float, number: int) -> float:
        if not float32_steps:
            return 1 - beta**number
        return float(1 - torch.pow(beta, torch.tensor(float(number))))

    narrow, finished = getattr(torch, given.dtype), []
    for index, start in enumerate(given.start):
        p = start.to(narrow).to(device)
        m, v = torch.zeros_like(p), torch.zeros_like(p)
        for number, gradients in enumerate(steps, 1):
            g = gradients[index].to(narrow).to(device)
            m, v = m + (1 - BETA1) * (g - m), BETA2 * v + (1 - BETA2) * g * g
            denominator = v.sqrt() / math.sqrt(correction(BETA2, number)) + EPSILON
            p = p * (1 - LR * DECAY) - LR / correction(BETA1, number) * (m / denominator)
        finished.append(p)
    return finished


def _optimizer(given: Given, options: Mapping[str, bool]) -> Tuple[List[Tensor], Any]:
    import torch

    narrow = getattr(torch, given.dtype)
    # A copy even where nothing is rounded: the optimizer writes in place.
    parameters = [start.to(narrow).to(given.device).clone().requires_grad_() for start in given.start]
    return parameters, torch.optim.AdamW(
        parameters, lr=LR, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=DECAY, **options
    )


def _gradient(value: Tensor, given: Given) -> Tensor:
    import torch

    gradient = value.to(getattr(torch, given.dtype)).to(given.device).clone()
    if given.layout == TRANSPOSED and gradient.dim() == 2:
        gradient = gradient.t().contiguous().t()
    return gradient


def _torch_step(given: Given, options: Mapping[str, bool]) -> List[Tensor]:
    parameters, optimizer = _optimizer(given, options)
    for gradients in given.gradients:
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = _gradient(gradient, given)
        optimizer.step()
    return parameters


def _scaled_torch_step(given: Given, options: Mapping[str, bool]) -> List[Tensor]:
    """As ``_torch_step``, with scaled gradients of which one step's holds an inf."""
    import torch

    parameters, optimizer = _optimizer(given, options)
    scaler = _grad_scaler(given.device)
    scaler.scale(torch.ones(1, device=given.device))
    for number, gradients in enumerate(given.gradients):
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = _gradient(gradient, given) * scaler.get_scale()
        if number == LOST_STEP:
            parameters[1].grad[3] = math.inf
        scaler.step(optimizer)
        scaler.update()
    return parameters


def _grad_scaler(device: str) -> Any:
    """A scaler whose powers of 2 round nothing; None where torch has none for the device."""
    import torch

    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=1000)
    return torch.cuda.amp.GradScaler(init_scale=1024.0, growth_interval=1000) if device == "cuda" else None


def _facts(device: str) -> Row:
    """How far a weight of 1.0 moves in 50 steps of 1e-3, and what one step on a zero gradient leaves.

    A dtype in which this torch has no AdamW for the device (float16 on the CPU, torch 1.13) is left out.
    """
    facts: Dict[str, Dict[str, float]] = {"moved_in_50_steps": {}, "after_a_zero_gradient": {}}
    for name in ("float32", "bfloat16", "float16"):
        try:
            moved = abs(_after(name, device, 1.0, 50, weight_decay=0.0) - 1)
            facts["moved_in_50_steps"][name] = moved
            facts["after_a_zero_gradient"][name] = _after(name, device, 0.0, 1)
        except RuntimeError as error:
            if "not implemented" not in str(error):
                raise
    return facts


def _after(dtype: str, device: str, gradient: float, steps: int, **options: float) -> float:
    """A weight of 1.0 after steps of 1e-3 on the same gradient."""
    import torch

    weight = torch.ones(4, dtype=getattr(torch, dtype), device=device, requires_grad=True)
    optimizer = torch.optim.AdamW([weight], lr=1e-3, **options)
    for _ in range(steps):
        weight.grad = torch.full_like(weight, gradient)
        optimizer.step()
    return float(weight[0].item())
