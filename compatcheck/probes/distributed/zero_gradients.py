"""Gradients of DeepSpeed's ZeRO stages on two processes.

One optimizer step of a small network on two ranks is compared with the exact gradient of the same global batch, for
ZeRO stages 0 to 3: with one backward pass per step and with several that the engine counts
(gradient_accumulation_steps), in float32 and bfloat16, with and without overlap_comm and contiguous_gradients, with
buckets that are too small for the network, and with a layer that is not used. One process of plain torch with the
whole batch is the control.

The gradient is read from an SGD step at a learning rate of 1024, so it is the gradient that trains. Bound: the
relative distance to the float64 gradient, over all parameters or for one parameter, is at most 64 u in float32 and 16
u in bfloat16 (u = 2^-24 and 2^-8: some dozens of roundings in a gradient of a few layers), and at most twice the
distance of one process. Above 4 times either bound the probe fails. It also fails if a stage raises an error or leaves
the ranks with different parameters. A healthy stack (DeepSpeed 0.19.8, torch 2.13.0 on a CPU, 24 seeds) gave 0.21 and
1.5; lost micro-batches give 10^5 in float32.
Known: ZeRO-2 of DeepSpeed 0.17.6 to 0.18.2 keeps only the last micro-batch (deepspeedai/DeepSpeed#7718).

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free. The CPU has no streams, so overlap faults that
depend on timing do not appear there. If a GPU is present, an error on the CPU is only recorded. contiguous_gradients
off is also only recorded: DeepSpeed before about 0.19.8 does not reduce such gradients on the CPU, because it looks
for a tensor type that the CPU does not have. Nothing is compiled.

Request: seed, device, dtype (tested in addition to float32), stages (default the stage of the training, else 0 to 3),
passes (backward passes per step, default the training's gradient_accumulation_steps, at most 4), training (the
settings of its deepspeed section are tested).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Tuple

from compatcheck.probes._criterion import Case, Measuring, Request, Row, Settings, Stage
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import _toy, _zero
from compatcheck.probes.distributed._ranks import judge as judge

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank

NEEDS: Dict[str, str] = _zero.NEEDS
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 14.0
ASKED_BY: Tuple[str, ...] = ("training.deepspeed",)
FRESH = True

OVERLAP = {"overlap_comm": True, "contiguous_gradients": True}
SCATTERED = {"overlap_comm": False, "contiguous_gradients": False}


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one stage, setting, dtype and number of backward passes each, and of the control."""
    return _ranks.measure(__file__, request, stage, _cases, _zero.environ)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: one step, and how far its gradient is off."""
    problem = _toy.problem(case["seed"], case["dtype"], rank.device, case["unused"])
    return _toy.answer(_zero.gradient(problem, case, rank), problem)


def _cases(request: Request, device: str) -> List[Row]:
    training = request.get("training") or {}
    section = training.get("deepspeed") or {}
    own = _zero.own_settings(section)
    stages = _zero.stages(request)
    passes = _zero.passes(request.get("passes") or training.get("gradient_accumulation_steps"))
    cases = []
    for dtype in _zero.dtypes(request):
        for number in stages:
            for steps, zero in ((1, {}), (passes, {}), (passes, OVERLAP), (passes, own)):
                if zero is not own or own:
                    cases.append(_case(request, number, dtype, steps, zero))
    for number in stages:
        cases.append(_case(request, number, "float32", 1, SCATTERED))
        cases.append(_case(request, number, "float32", 1, {}, unused=True))
    for case in cases:
        if device == "cpu" and case["zero"].get("contiguous_gradients") is False:
            case["recorded"] = "older DeepSpeed does not reduce such gradients on the CPU"
    return cases


def _case(request: Request, stage: int, dtype: str, passes: int, zero: Settings, unused: bool = False) -> Row:
    words = ", ".join(
        key if value is True else "no " + key if value is False else key for key, value in sorted(zero.items())
    )
    return {
        "case": _ranks.passes(passes) + (", one unused layer" if unused else ""),
        "variant": "ZeRO-%d" % stage + (" with " + words if words else ""),
        "dtype": dtype,
        "seed": int(request["seed"]),
        "stage": stage,
        "passes": passes,
        "zero": dict(zero),
        "unused": unused,
    }
