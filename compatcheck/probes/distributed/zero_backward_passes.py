"""Several backward passes per step under DeepSpeed's ZeRO.

Micro-batches can be summed in three ways. managed: the engine counts them (gradient_accumulation_steps, with backward
and step for each micro-batch). boundary: the caller marks the last one (set_gradient_accumulation_boundary before
each, one step). bare: the caller makes several backward passes and then one step, with gradient_accumulation_steps 1.
The gradient that an SGD step applies is compared with the exact gradient of all micro-batches, on two ranks, for ZeRO
stages 0 to 3. One process of plain torch with the whole batch is the control.

Bound: as in zero_gradients, 64 u in float32 and 16 u in bfloat16 (relative, 2-norm), and twice the error of the
control. Four times this bound fails. A lost micro-batch gives 10^5 in float32.
Known (torch 2.13.0): with stage 2, managed and boundary keep only the last pass in DeepSpeed 0.17.6 to 0.18.2
(deepspeedai/DeepSpeed#7718). bare is right with stages 0 and 3. With stages 1 and 2 it raises a TypeError in 0.17.6 to
0.18.2, and silently keeps only the last pass from 0.18.3 to 0.19.8. DeepSpeed does not officially support this use, so
bare is recorded, and judged only if the request names it.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free. Nothing is compiled.

Request: seed, device, dtype (tested in addition to float32), stages (default the stage of the training, else 0 to 3),
ways (default managed and boundary).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Tuple

from compatcheck.probes._criterion import Case, Measuring, Request, Row, Stage
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import _toy, _zero
from compatcheck.probes.distributed._ranks import judge as judge

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank

NEEDS: Dict[str, str] = _zero.NEEDS
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 10.0
ASKED_BY: Tuple[str, ...] = ("training.deepspeed",)
FRESH = True

PASSES = 4
JUDGED_WAYS = ("managed", "boundary")


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one stage, way and dtype each, and of the control."""
    return _ranks.measure(__file__, request, stage, _cases, _zero.environ)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: one step, and how far its gradient is off."""
    problem = _toy.problem(case["seed"], case["dtype"], rank.device)
    return _toy.answer(_zero.gradient(problem, case, rank), problem)


def _cases(request: Request, device: str) -> List[Row]:
    stages = _zero.stages(request)
    # What is known to raise comes last, for it costs a new set of processes.
    ways = request.get("ways") or (*JUDGED_WAYS, "bare")
    cases = []
    for way in ways:
        recorded = way not in (request.get("ways") or JUDGED_WAYS)
        for number in stages:
            for dtype in ("float32",) if recorded else _zero.dtypes(request):
                case = {
                    "case": _ranks.passes(PASSES),
                    "variant": "ZeRO-%d, %s" % (number, way),
                    "dtype": dtype,
                    "seed": int(request["seed"]),
                    "stage": number,
                    "passes": PASSES,
                    "way": way,
                }
                if recorded:
                    case["recorded"] = "DeepSpeed does not officially support this use"
                cases.append(case)
    return cases
