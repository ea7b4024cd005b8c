"""Collectives of all sizes: sums are exact, every bit arrives, results are repeatable.

all_reduce, reduce_scatter, all_gather, broadcast and all_to_all run in float32, bfloat16 and float16, on buffers from
1 KiB to 256 MiB, each several times. Some inputs are whole numbers so small that no partial sum is rounded in the
dtype; their results must be exact. If ranks only pass data on, each element shows which rank sent it. Random inputs
may differ from their float64 sum by the bound of `all_reduce`: in float32 u |y| + 8 sqrt(W) u (|y| + |t|), where |t|
is the 2-norm of the W terms of an element; in 16 bits, where each partial sum is rounded to the dtype, u |y| + 2 (W -
1) u |t|. The probe fails if an element is beyond 4 times this bound, if the results of two ranks differ in a bit, if a
repetition gives other numbers, or if a collective raises an error.

The sizes increase until the time for an operation and dtype is used up. The result lists the sizes that were left out
and the bus bandwidth that was reached: bytes per second times 2 (W - 1) / W for all_reduce, times (W - 1) / W if every
rank holds a part, times 1 for broadcast. A race that does not appear in so many repetitions is not found.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free.

Request: seed, device, seconds (in total, default 20; on GPUs 60), training (skipped if its world_size is 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Tuple

from compatcheck.probes._criterion import Case, Measured, Measuring, Request, Row, Stage
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import _exchange

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 400.0
PROFILE: str = "deep"
SECONDS: float = 20.0
ASKED_BY: Tuple[str, ...] = ()
FRESH = True

DTYPES = ("float32", "bfloat16", "float16")
BUDGET = {"cpu": 20.0, "cuda": 60.0}


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one operation and dtype each, and of the control."""
    return _ranks.measure(__file__, request, stage, joint_cases, several=True)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: one operation and dtype, over the sizes."""
    return _exchange.over_sizes(case, rank)


def judge(measured: Measured) -> "Tuple[Outcome, str]":
    """As for all ranks; a pass says how far it went, and that it proves no more."""
    outcome, why = _ranks.judge(measured)
    tried = [row["sizes"] for row in measured.get("rows", ()) if row.get("sizes") and "recorded" not in row]
    if outcome != "pass" or not tried:
        return outcome, why
    reached = sorted(sizes[-1]["bytes"] for sizes in tried)
    lines = [
        "%d operations and dtypes are exact or within rounding" % len(tried),
        "from 1 KiB to %s, in time for %s in all of them" % tuple(map(_exchange.size_label, (reached[-1], reached[0]))),
    ]
    silent = [row for row in measured["rows"] if "sizes" not in row and "recorded" in row]
    lines += ["not tried: " + ", ".join(sorted({str(row["case"]) for row in silent}))] if silent else []
    return outcome, ", ".join(lines) + "; a race may not appear in so few repetitions"


def joint_cases(request: Request, device: str) -> List[Row]:
    """One case for each operation and dtype, with its share of the time."""
    seconds = float(request.get("seconds", BUDGET[device]))
    return [
        {
            "case": operation,
            "variant": "integers and random numbers",
            "dtype": dtype,
            "seed": int(request.get("seed", 0)),
            "operation": operation,
            "seconds": seconds / (len(_exchange.OPERATIONS) * len(DTYPES)),
        }
        for operation in _exchange.OPERATIONS
        for dtype in DTYPES
    ]
