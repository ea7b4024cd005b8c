"""DeepSpeed's gradient clipping when the configuration does not set it.

The default of gradient_clipping was 0 (off) and is 1.0 from DeepSpeed 0.19.3 on (deepspeedai/DeepSpeed#8068). One SGD
step of a small network whose gradient norm is above 1 is compared with the exact gradient of the global batch, on two
ranks, for ZeRO stages 0 to 3. gradient_clipping is not set. Two controls run as well: gradient_clipping set to 0, and
one process of plain torch. The ratio in a row is the size of the applied gradient divided by the size of the true
gradient: 1 if nothing is clipped.

Bound: as in zero_gradients, 64 u in float32 (relative, 2-norm), and twice the error of one process. Four times this
bound fails. Clipping a gradient of norm 2 to 1 gives 10^5. The new default clips by design, so a clipped step is
recorded, and judged only if the request asks for a step that is not clipped.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free. Nothing is compiled.

Request: seed, device, stages (default the stage of the training, else 0 to 3), unclipped (true: the user expects no
clipping).
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
SECONDS: float = 9.0
ASKED_BY: Tuple[str, ...] = ("training.deepspeed",)
FRESH = True

LOSS_FACTOR = 8.0


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one stage each, with the key left out and set to 0, and of one process."""
    return _ranks.measure(__file__, request, stage, _cases, _zero.environ)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: one step, and how far its gradient is off."""
    problem = _toy.problem(case["seed"], case["dtype"], rank.device, factor=LOSS_FACTOR)
    return _toy.answer(_zero.gradient(problem, case, rank), problem)


def _cases(request: Request, device: str) -> List[Row]:
    stages = _zero.stages(request)
    cases = []
    for number in stages:
        for words, value in (("gradient_clipping 0", 0.0), ("gradient_clipping left out", None)):
            case = {
                "case": "gradient norm above 1",
                "variant": "ZeRO-%d, %s" % (number, words),
                "dtype": "float32",
                "seed": int(request["seed"]),
                "stage": number,
                "config": {"gradient_clipping": value},
            }
            if value is None and not request.get("unclipped"):
                case["recorded"] = "DeepSpeed's own default"
            cases.append(case)
    return cases
