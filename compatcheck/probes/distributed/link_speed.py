"""Speed between processes: every pair is measured, one pair at a time.

Each pair of ranks exchanges buffers several times in a row. In each round every rank has another partner, and all
rounds run twice. An exchange takes as long as its slower side. The best exchange counts, in bytes per second in each
direction, because a process that waits for its turn on a busy machine makes a good link look slow. On one machine,
this measures the speed of its own memory. Between nodes (`compatcheck cluster`), each node has a best link; a link
below 0.4 of the median of these is reported as slow. A failure means that a pair received different data than was
sent, compared bit by bit.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free.

Request: seed, device.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from compatcheck.probes._criterion import Case, Measured, Measuring, Request, Row, Stage, Tensor
from compatcheck.probes.distributed import _ranks

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 3.0
ASKED_BY: Tuple[str, ...] = ()
FRESH = True
RANKS = "one_per_node"

SMALL, LARGE = 2**18, {"cpu": 2**22, "cuda": 2**26}
FAST_SECONDS = 0.1
PASSES = 2
EXCHANGES = 5


def measure(request: Request, stage: Stage) -> Measuring:
    """One row, and the control."""
    return _ranks.measure(__file__, request, stage, joint_cases)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: the speeds with each partner, and whether all that came was right."""
    speeds: Dict[str, List[float]] = {}
    fine = {"theta": 0.0, "rho": 1.0, "tensor": "what was exchanged", "nonfinite": 0}
    row: Row = dict(fine)
    for _ in range(PASSES):
        for number, partner in enumerate(partners(rank.number, rank.world)):
            rank.mark("exchange of pairs, round %d" % (number + 1))
            if partner is not None:
                reached, right = _exchange(rank, partner, case["large"])
                speeds.setdefault(str(partner), []).extend(reached)
                if not right:
                    says = "rank %d received different data than rank %d sent" % (rank.number, partner)
                    row = {**fine, "theta": math.inf, "rho": math.inf, "says": says}
    return {"measured": {**row, "rank": rank.number, "speeds": speeds}, "control": fine, "digest": ""}


def judge(measured: Measured) -> "Tuple[Outcome, str]":
    """As for all ranks; the speeds are told beside that."""
    outcome, why = _ranks.judge(measured)
    if outcome != "pass":
        return outcome, why
    speed = max(max(each) for row in measured["rows"] for each in row.get("speeds", {}).values())
    return outcome, "every pair delivered every bit; the fastest pair reached %.0f MB/s each way" % (speed / 1e6)


def partners(number: int, world: int) -> List[Any]:
    """The partner in each round of a round robin, None where one is left over."""
    count = world + world % 2
    found: List[Any] = []
    for turn in range(count - 1):
        if number == count - 1:
            partner = turn * (count // 2) % (count - 1)
        else:
            partner = (turn - number) % (count - 1)
            partner = count - 1 if partner == number else partner
        found.append(partner if partner < world else None)
    return found


def _exchange(rank: Rank, partner: int, large: int) -> Tuple[List[float], bool]:
    """What each exchange reached. Large and several where a small one went quickly, as both sides' times say.

    They meet before, for the partner may still be busy with another.
    """
    import torch

    other = torch.zeros(1, device=rank.device)
    _swap(rank, partner, torch.zeros_like(other), other)
    seconds, right = _once(rank, partner, SMALL)
    own = torch.tensor([seconds], device=rank.device)
    _swap(rank, partner, own, other)
    if max(float(own), float(other)) > FAST_SECONDS:
        return [SMALL / seconds], right
    each = [_once(rank, partner, large) for _ in range(EXCHANGES)]
    return [large / seconds for seconds, _ in each], right and all(fine for _, fine in each)


def _once(rank: Rank, partner: int, size: int) -> Tuple[float, bool]:
    import torch

    own = torch.full((size,), rank.number % 251, dtype=torch.uint8, device=rank.device)
    other = torch.zeros(size, dtype=torch.uint8, device=rank.device)
    started = time.monotonic()
    _swap(rank, partner, own, other)
    if rank.device != "cpu":
        torch.cuda.synchronize()
    seconds = max(time.monotonic() - started, 1e-9)
    return seconds, bool((other == partner % 251).all())


def _swap(rank: Rank, partner: int, own: Tensor, other: Tensor) -> None:
    import torch

    kinds = [(torch.distributed.isend, own), (torch.distributed.irecv, other)]
    pairs = [torch.distributed.P2POp(kind, tensor, partner) for kind, tensor in kinds]
    for handle in torch.distributed.batch_isend_irecv(pairs):
        handle.wait()


def joint_cases(request: Request, device: str) -> List[Row]:
    return [
        {"case": "pairs", "variant": "exchange", "dtype": "float32", "seed": 0, "large": LARGE[device]},
    ]
