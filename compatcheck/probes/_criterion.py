"""How far a result may be from the exact one: theta, rho and the budget of a sum.

Imported by the child and by the parent: torch inside functions only, the syntax that of Python 3.8.

Words. *Candidate*: the result under trial. *Exact*: the same inputs in float64 on the CPU.
*Baseline*: the plain formula at the candidate's precision. ``u`` is the unit roundoff of the
output's dtype, ``a`` that of the accumulator (2**-24 where inputs have 32 or fewer bits).

theta = max |candidate - exact| / budget, a non-finite candidate where exact is finite gives inf.
rho = rms(candidate) / max(rms(baseline), u / 10), rms(y) = |y - exact| / |exact| in the 2-norm.
The budgets are sums of first-order rounding bounds: 8 sqrt(n) a (|y| + |t|) for a sum of n terms t
(8 standard deviations of a random walk of roundings; Higham & Mary 2019, Ipsen & Zhou
arXiv 1906.10465), 8 u |t| for terms stored narrowly, u |y| for every rounding of the output.
On healthy CPU stacks theta stayed below 1 and rho below 3; planted faults gave theta above 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Dict, Generator, List, Literal, Mapping, Sequence, Tuple, Union

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST_SUBNORMAL = {"float64": 2.0**-1074, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}
TF32_ROUNDOFF = 2.0**-11

WATCH_THETA, FAIL_THETA = 1.0, 4.0
WATCH_RHO, FAIL_RHO = 2.0, 4.0
RANK = {"pass": 0, "watch": 1, "fail": 2}

Number = Union[float, str]
Tensor = Any
"""A ``torch.Tensor`` of whatever release."""
Module = Any
"""A ``torch.nn.Module``."""
Tensors = Dict[str, Tensor]
Request = Mapping[str, Any]
"""What a probe is asked: seed, device, and the settings of the training."""
Case = Mapping[str, Any]
"""What every rank of a probe runs at one time."""
Settings = Mapping[str, Any]
"""Settings of a training, of a model or of DeepSpeed, as their files give them."""
Row = Dict[str, Any]
"""A case, or what was measured of it: plain JSON."""
Measured = Mapping[str, Any]
Measuring = Generator[Row, None, Row]
"""The rows as they come, and then the rest of what was measured."""
Stage = Callable[[str], None]
"""Notes what is done next."""


class Unusable(Exception):
    """What the probe measures cannot be built or run here, although its packages can be imported."""

    def __init__(self, what: str, error: BaseException) -> None:
        lines = str(error).strip().splitlines()
        super().__init__(f"{what}: {type(error).__name__}: {lines[0][:300] if lines else ''}".rstrip(": "))


def verdict(theta: Number, rho: Number = 0.0) -> Literal["pass", "watch", "fail"]:
    """``pass``, ``watch`` or ``fail``; NaN and infinity (also as JSON strings) fail."""
    error, ratio = float(theta), float(rho)
    if not (error <= FAIL_THETA and ratio <= FAIL_RHO):
        return "fail"
    return "pass" if error <= WATCH_THETA and ratio <= WATCH_RHO else "watch"


def compare(candidate: Tensor, exact: Tensor, budget: Tensor, baseline: Tensor, dtype: str) -> Dict[str, float]:
    """theta, rho and the number of non-finite elements; every tensor is float64 on the CPU."""
    import torch

    lost = ~torch.isfinite(candidate)
    nonfinite = int(lost.sum())
    if nonfinite:
        return {"theta": math.inf, "rho": math.inf, "nonfinite": nonfinite}
    floor = SMALLEST_SUBNORMAL[dtype]
    theta = float(((candidate - exact).abs() / (budget + floor)).max())
    scale = max(relative_rms(baseline, exact), UNIT_ROUNDOFF[dtype] / 10)
    return {"theta": theta, "rho": relative_rms(candidate, exact) / scale, "nonfinite": 0}


def relative_rms(value: Tensor, exact: Tensor) -> float:
    """2-norm of the error over the 2-norm of the exact value, or the error itself where that is 0."""
    error, size = float((value - exact).norm()), float(exact.norm())
    return error / size if size else error


def within_budget(rho: float, error: Tensor, budget: Tensor) -> float:
    """rho, but no more than 4 times the error over the budget in the 2-norm, so that theta decides.

    For results whose error is that of a handful of roundings, or which cancel: there the error over the baseline's
    is a ratio of chance and says nothing.
    """
    return min(rho, 4 * float(error.norm() / budget.norm()))


def accumulation(terms: int, size: Tensor, norm: Tensor, roundoff: float, tensor_cores: bool) -> Tensor:
    """Budget of a sum of ``terms`` terms of 2-norm ``norm`` and value ``size``.

    ``tensor_cores``: hardware that truncates after every block of four products needs terms / 4.
    """
    factor = 8 * math.sqrt(terms)
    if tensor_cores:
        factor = max(factor, terms / 4)
    return factor * roundoff * (size.abs() + norm)


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """What most probes judge by: the worst of ``rows``, or a skip where ``unsupported`` says why there are none."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    return judge_rows(measured["rows"])


def judge_rows(rows: Sequence[Measured]) -> Tuple[Outcome, str]:
    """The worst row decides, of failures the worst that convicts, which takes another variant passing on its case.

    A row has ``case`` (the inputs, in words), ``variant`` (the implementation or setting under trial),
    ``dtype``, ``tensor`` (the worst of those compared), ``theta``, ``rho`` and ``nonfinite``, or ``error`` for
    what it raised. Optional: ``control`` (True: proves the inputs sound, is never convicted), ``policy`` (the
    setting that permits the error), ``recorded`` (why it is shown and not judged), ``by_design`` (the documented
    meaning that the result has instead, with ``difference``, its relative distance from the exact one; not judged),
    ``says`` (the finding in words, where theta is no rounding error).
    """
    judged = [row for row in rows if "recorded" not in row and "by_design" not in row and not row.get("control")]
    if not judged:
        return "skip", "nothing in this probe can be checked here"
    worst = max(judged, key=_severity)
    if _severity(worst)[0] == RANK["fail"]:
        alike = [row for row in judged if _severity(row)[:2] == _severity(worst)[:2]]
        worst = max(alike, key=lambda row: (bool(_passing(rows, row)), _severity(row)))
    outcome: Outcome = "fail" if "error" in worst else verdict(worst["theta"], worst["rho"])
    where = f"{worst['case']}, {worst['variant']}, {worst['dtype']}"
    cases = f"worst of {len(judged)} cases" if len(judged) > 1 else "1 case"
    if outcome != "fail":
        return outcome, f"{_what(worst)} ({where}; {cases})"
    if "policy" in worst:
        return "watch", f"{_what(worst)}, as the setting {worst['policy']} permits ({where}; {cases})"
    passing = _passing(rows, worst)
    if not passing:
        suspicion = "no implementation passes there, so the hardware or the probe itself is suspect"
        return "watch", f"{_what(worst)} ({where}; {suspicion}; {cases})"
    return "fail", f"{_what(worst)} ({where}; passing there: {', '.join(passing)}; {cases})"


def _severity(row: Measured) -> Tuple[int, int, float]:
    """A setting's error ranks below a fault, whatever its size."""
    if "error" in row:
        return RANK["fail"], 1, math.inf
    rank = RANK[verdict(row["theta"], row["rho"])]
    return rank, int("policy" not in row), max(float(row["theta"]), float(row["rho"]) / 2)


def _passing(rows: Sequence[Measured], worst: Measured) -> List[str]:
    """The variants none of whose rows on the worst row's case fails."""
    ranks: Dict[str, int] = {}
    for row in rows:
        if row["case"] == worst["case"]:
            ranks[row["variant"]] = max(ranks.get(row["variant"], 0), _severity(row)[0])
    return sorted(variant for variant, rank in ranks.items() if rank == 0)


def _what(row: Measured) -> str:
    if "says" in row:
        return str(row["says"])
    if "error" in row:
        return f"raised {row['error']}"
    if row["nonfinite"]:
        return f"{row['nonfinite']} elements of {row['tensor']} are not finite"
    return (
        f"error of {row['tensor']}: {float(row['theta']):.2g} times the expected rounding error "
        f"(bound 1, fails above 4), {float(row['rho']):.2g} times the error of the plain formula "
        "(bound 2, fails above 4)"
    )
