"""Training steps under DeepSpeed's ZeRO, compared with one process.

A small network takes six optimizer steps on all ranks, with the user's own DeepSpeed settings (stage, overlap_comm,
contiguous_gradients, reduce_scatter, offload, clipping, accumulation). Its buckets are so small that they are swapped
a dozen times in every backward pass. Without settings, the probe runs every stage, and ZeRO-2 with the settings of two
reports in which the loss went to 0 or NaN: GLM-4 (zai-org/GLM-4#260: overlap_comm, contiguous_gradients and
reduce_scatter, bfloat16) and XTuner (InternLM/xtuner#841: overlap_comm, bfloat16, several micro-batches per step). The
size of the gradient in each step and the parameters at the end are compared with those of one process in float64. One
process of plain torch with the whole batch is the control.

Bound: a relative distance of 64 u in float32 and 16 u in 16 bits (u = 2^-24 and 2^-8), and twice the error of the
control. Above 4 times either bound the probe fails. It also fails if a stage raises an error or leaves the ranks with
different parameters. A healthy stack (DeepSpeed 0.19.8, torch 2.13.0 on a CPU) gave 0.2 and 1.1.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free. The CPU has no streams, so faults of overlap
do not appear there. On GPUs, a race may not appear in six steps: a pass does not prove that there is none.

Request: seed, device, dtype (tested in addition to float32), stages (default the stage of the training, else 0 to 3),
training (its deepspeed section and gradient_accumulation_steps are tested).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Tuple

from compatcheck.probes._criterion import Case, Measured, Measuring, Request, Row, Settings, Stage
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import _run, _zero

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = _zero.NEEDS
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 14.0
ASKED_BY: Tuple[str, ...] = ()
FRESH = True

GLM_4 = {"overlap_comm": True, "contiguous_gradients": True, "reduce_scatter": True}
XTUNER = {"overlap_comm": True}
XTUNER_PASSES = 4


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one stage, setting and dtype each, and of the control."""
    return _ranks.measure(__file__, request, stage, joint_cases, _zero.environ)


def work(case: Case, rank: Rank) -> Measured:
    """In each rank: all steps, and how far they lead astray."""
    trial = _run.trial(case["seed"], case["dtype"], rank.world * case["passes"], case["clip"], rank.device)
    return _run.answer(_zero.course(trial, case, rank), trial)


def judge(measured: Measured) -> "Tuple[Outcome, str]":
    """As for all ranks; a pass says what it does not prove."""
    outcome, why = _ranks.judge(measured)
    return outcome, why + ("; a race may not appear in %d steps" % _run.STEPS if outcome == "pass" else "")


def joint_cases(request: Request, device: str) -> List[Row]:
    """The user's own settings, or every stage and the two of the reports."""
    training = request.get("training") or {}
    section = training.get("deepspeed") or {}
    wide = str(request.get("dtype") or "bfloat16")
    narrow = "bfloat16" if device == "cpu" or wide == "float32" else wide
    clip = section.get("gradient_clipping")
    clip = float(clip) if isinstance(clip, (int, float)) else 0.0
    passes = _zero.passes(training.get("gradient_accumulation_steps"))
    own = _zero.own_settings(section)
    if "zero_stage" in section and not request.get("stages"):
        settings = "ZeRO-%d, own settings" % section["zero_stage"]
        dtypes = ("float32",) if wide == "float32" else ("float32", narrow)
        return [_case(request, settings, int(section["zero_stage"]), dtype, passes, own, clip) for dtype in dtypes]
    cases = [
        _case(request, "ZeRO-%d" % number, number, "float32", 2, own, clip)
        for number in request.get("stages") or _zero.STAGES
    ]
    if 2 in (request.get("stages") or _zero.STAGES):
        cases.append(_case(request, "ZeRO-2 as in GLM-4's report", 2, narrow, 1, GLM_4, clip))
        cases.append(_case(request, "ZeRO-2 as in XTuner's report", 2, narrow, XTUNER_PASSES, XTUNER, clip))
    return cases


def _case(
    request: Request,
    variant: str,
    stage: int,
    dtype: str,
    passes: int,
    zero: Settings,
    clip: float,
) -> Row:
    return {
        "case": "%d steps of %s" % (_run.STEPS, _ranks.passes(passes)),
        "variant": variant,
        "dtype": dtype,
        "seed": int(request.get("seed", 0)),
        "stage": stage,
        "passes": passes,
        "zero": dict(zero),
        "clip": clip,
    }
