"""One operator against float64: where it runs, its inputs, and the rows of one problem.

Words, theta and rho as in `_criterion.py`. Inputs are drawn in float64 on the CPU and rounded once to
the dtype, so that every device and release gets the same numbers. An operator is judged beside a
control: its plain formula in float32 on the same device, rounded once.
"""

from __future__ import annotations

import os
import zlib
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import (
    RANK,
    UNIT_ROUNDOFF,
    Request,
    Row,
    Tensor,
    Tensors,
    compare,
    verdict,
    within_budget,
)

LACKING = ("not implemented", "NOT_SUPPORTED", "not supported", "No available kernel", "unexpected keyword argument")
CANNOT_RUN = "cannot run here"
NARROW_SUMS = "torch sums these gradients in 16 bits"
FATAL = ("CUDA error", "out of memory", "can't allocate memory", "No space left", "STATUS_EXECUTION_FAILED")

Formula = Callable[[Tensors], Tensors]


class Problem(NamedTuple):
    """One input at one dtype; tensors are float64 on the CPU, ``inputs`` already rounded to the dtype.

    ``few`` names tensors whose error is that of a handful of sums (see ``within_budget``), ``wide`` those that are
    float32 results whatever the inputs are.
    """

    case: str
    dtype: str
    inputs: Tensors
    exact: Tensors
    budget: Tensors
    baseline: Tensors
    few: Tuple[str, ...] = ()
    wide: Tuple[str, ...] = ()


def dtypes_of(request: Request, device: str) -> Tuple[str, ...]:
    """float32, the narrow dtypes that are fast there, and the one the request names."""
    import torch

    chosen = ["float32", "bfloat16"]
    if device == "cuda":
        chosen = ["float32", "float16"]
        if torch.cuda.get_device_capability() >= (8, 0):
            chosen.append("bfloat16")
    asked = str(request.get("dtype") or "float32")
    return tuple(chosen) if asked in chosen or asked not in UNIT_ROUNDOFF else (*chosen, asked)


def narrow_sums(request: Request, dtype: str) -> Row:
    """The mark of a row whose sum torch carries in 16 bits by design; none where the request asks for them."""
    if dtype == "float32" or request.get("usage") == "parameters_in_16_bits":
        return {}
    return {"recorded": NARROW_SUMS}


def draw(request: Request, case: str, **shapes: Tuple[int, ...]) -> Tensors:
    """Standard normal float64 tensors, the same for a seed and a case everywhere."""
    import torch

    generator = torch.Generator().manual_seed(int(request.get("seed", 0)) * 1009 + zlib.crc32(case.encode()))
    return {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}


def rounded(tensors: Tensors, dtype: str, wide: Tuple[str, ...] = ()) -> Tensors:
    """The tensors as the dtype stores them (float32 the ``wide``), in float64 on the CPU; integers as they are."""
    import torch

    def stored(name: str, value: Tensor) -> Tensor:
        return value.detach().to(torch.float32 if name in wide else getattr(torch, dtype)).double().cpu()

    return {name: stored(name, value) if value.is_floating_point() else value for name, value in tensors.items()}


def place(tensors: Tensors, dtype: str, device: str) -> Tensors:
    """Fresh leaves of the dtype on the device; floating ones take gradients."""
    import torch

    narrow = getattr(torch, dtype)
    return {
        name: value.to(device, narrow, copy=True).requires_grad_() if value.is_floating_point() else value.to(device)
        for name, value in tensors.items()
    }


def solved(
    case: str,
    dtype: str,
    inputs: Tensors,
    formula: Formula,
    budget: Callable[[Tensors, Tensors, str], Tensors],
    few: Tuple[str, ...] = (),
    wide: Tuple[str, ...] = (),
) -> Problem:
    """Exact values, budgets and the baseline (the formula in float32, rounded) of inputs drawn in float64.

    ``budget`` takes the rounded inputs, the exact values and the dtype.
    """
    inputs = rounded(inputs, dtype)
    exact = formula(inputs)
    baseline = rounded(formula(_narrowed(inputs, "cpu")), dtype, wide)
    return Problem(case, dtype, inputs, exact, budget(inputs, exact, dtype), baseline, few, wide)


def control(problem: Problem, formula: Formula, device: str) -> Row:
    """The row of the plain formula in float32 on the device, rounded once."""
    return trial(problem, "plain formula", _plainly, formula, device, control=True)


def trial(
    problem: Problem,
    variant: str,
    run: Callable[..., Tensors],
    *arguments: Any,
    budget: Optional[Tensors] = None,
    baseline: Optional[Tensors] = None,
    **marks: Any,
) -> Row:
    """The row of a variant: the worst of the tensors that ``run(problem, *arguments)`` returns, or what it raised.

    ``budget`` and ``baseline`` replace the problem's; ``marks`` are further keys of the row.
    """
    row = {"case": problem.case, "variant": variant, "dtype": problem.dtype, **marks}
    candidate, raised = attempt(lambda: run(problem, *arguments))
    if raised:
        return {**row, **raised}
    return {**row, **worst_of(candidate, problem, budget or problem.budget, baseline or problem.baseline)}


def attempt(run: Callable[[], Tensors]) -> Tuple[Tensors, Dict[str, str]]:
    """What it returns, in float64 on the CPU, or the keys of a row for what it raised.

    What this torch or device lacks is recorded, not judged. Raised are errors after which a GPU is unusable, a lack
    of memory or disk, and a TypeError or AttributeError of a probe's own code.
    """
    try:
        return {name: value.detach().double().cpu() for name, value in run().items()}, {}
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = str(error).strip().split("\n")[0][:160]
        lacking = any(word in reason for word in LACKING) or isinstance(error, AttributeError) and _lacks_name(error)
        if not lacking and not isinstance(error, RuntimeError):
            raise
        if any(word in str(error) for word in FATAL):
            raise
        raised = {"error": f"{type(error).__name__}: {reason}"}
        if lacking:
            raised["recorded"] = CANNOT_RUN
        return {}, raised


def _lacks_name(error: AttributeError) -> bool:
    """Whether a module or class lacks a name, or code outside the probes met an attribute that is not there."""
    if str(error).startswith(("module '", "type object '")):
        return True
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    probes = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return frame is not None and not os.path.abspath(frame.tb_frame.f_code.co_filename).startswith(probes)


def worst_of(candidate: Tensors, problem: Problem, budget: Tensors, baseline: Tensors) -> Row:
    """theta, rho and the number of non-finite elements of the tensor that came out worst."""
    found = []
    for name, value in candidate.items():
        exact = problem.exact[name]
        row = compare(value, exact, budget[name], baseline[name], problem.dtype)
        if name in problem.few:
            row["rho"] = within_budget(row["rho"], value - exact, budget[name])
        found.append({"tensor": name, **row})
    return max(found, key=lambda row: (RANK[verdict(row["theta"], row["rho"])], row["theta"]))


def gradients(output: Tensor, leaves: Tensors, upstream: Tensor, **names: str) -> Tensors:
    """The gradients of leaves under new names (``dx="x"``); the output's are sent back with ``upstream``."""
    output.backward(upstream)
    return {new: leaves[old].grad for new, old in names.items()}


def _plainly(problem: Problem, formula: Formula, device: str) -> Tensors:
    return rounded(formula(_narrowed(problem.inputs, device)), problem.dtype, problem.wide)


def _narrowed(inputs: Tensors, device: str) -> Tensors:
    """The inputs on the device, floating ones in float32."""
    return {name: (value.float() if value.is_floating_point() else value).to(device) for name, value in inputs.items()}
