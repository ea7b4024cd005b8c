"""Gradients of DeepSpeed's ZeRO stages on two processes.

One optimiser step of a small network on two ranks is compared with the exact gradient of the same global batch, for
ZeRO stage 0 to 3, with one backward pass a step and with several that the engine counts
(gradient_accumulation_steps), in float32 and bfloat16, with and without overlap_comm and contiguous_gradients, with
buckets that the network overfills, and with a layer that takes no part. One process of plain torch with the whole
batch is the control.

The gradient is read from an SGD step at a learning rate of 1024, so it is the one that trains. Bound: the relative
distance to the float64 gradient, over all parameters or for one, is at most 64 u in float32 and 16 u in bfloat16 (u =
2^-24, 2^-8: some dozens of roundings in a gradient of a few layers) and at most twice that of one process; above 4
times either it fails, and so does a stage that raises or leaves the ranks with different parameters. A healthy stack
(DeepSpeed 0.19.8, torch 2.13.0 on a CPU, 24 seeds) gave 0.21 and 1.5; lost micro-batches give 10^5 in float32.
Known: ZeRO-2 of DeepSpeed 0.17.6 to 0.18.2 keeps the last micro-batch alone (deepspeedai/DeepSpeed#7718).

Runs over gloo on the CPU, over NCCL where two GPUs are free; the CPU has no streams, so faults of overlap that are a
matter of timing do not show there. What raises on the CPU is only recorded where a GPU is present, and so is
contiguous_gradients off, which DeepSpeed before 0.19.8 or so does not reduce on the CPU (it looks for a type of
tensor that the CPU has not). Nothing is compiled.

Request: seed, device, dtype (tried beside float32), stages (default that of the training, else 0 to 3), passes
(backward passes a step, default the training's gradient_accumulation_steps, 4 at most), training (the settings of its
deepspeed section are tried).
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
            case["recorded"] = "older DeepSpeed leaves such gradients unreduced only on the CPU"
    return cases


def _case(request: Request, stage: int, dtype: str, passes: int, zero: Settings, unused: bool = False) -> Row:
    words = ", ".join(
        key if value is True else "no " + key if value is False else key for key, value in sorted(zero.items())
    )
    return {
        "case": _ranks.passes(passes) + (", a layer unused" if unused else ""),
        "variant": "ZeRO-%d" % stage + (" with " + words if words else ""),
        "dtype": dtype,
        "seed": int(request["seed"]),
        "stage": stage,
        "passes": passes,
        "zero": dict(zero),
        "unused": unused,
    }
