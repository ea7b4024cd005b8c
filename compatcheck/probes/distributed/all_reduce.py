"""Collectives between two processes: sums, gathers and broadcasts.

The all-reduce (sum) of tensors of 1, 1000 and 300001 elements in float32, bfloat16 and float16 is compared with the
float64 sum of the inputs of the ranks. Broadcast and all-gather must deliver every bit. The same sum in one process is
the control.

Bound for the sum of W terms: in float32, 1 u |y| + 8 sqrt(W) u (|y| + |t|), where |t| is the 2-norm of the terms of
one element. In 16 bits, gloo and NCCL round each partial sum to the dtype, and the bound is u |y| + 2 (W - 1) u |t|.
The probe fails if an element is beyond 4 times the bound, if the sums of two ranks differ in a bit (their parameters
would drift apart), or if a collective raises an error. Healthy stacks gave 0.5.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free.

Request: seed, device, training (skipped if its world_size is 1).
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Dict, List, Tuple

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Case,
    Measuring,
    Request,
    Row,
    Stage,
    Tensor,
    accumulation,
    compare,
)
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import judge as judge

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 3.0
ASKED_BY: Tuple[str, ...] = ("training.world_size",)
FRESH = True

DTYPES = ("float32", "bfloat16", "float16")
SIZES = (1, 1000, 300001)
OPERATIONS = ("all_reduce", "broadcast", "all_gather")


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one collective, size and dtype each, and of the control."""
    return _ranks.measure(__file__, request, stage, _cases, several=True)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: one collective, and how far its result is off."""
    import torch

    narrow = getattr(torch, case["dtype"])
    generator = torch.Generator().manual_seed(case["seed"])
    draw = torch.randn(rank.world, case["size"], generator=generator, dtype=torch.float64)
    terms = draw.to(narrow).double()
    found = _collective(case["operation"], terms[rank.number].to(rank.device, narrow), rank)
    exact = {"all_reduce": terms.sum(0), "broadcast": terms[0], "all_gather": terms.flatten()}[case["operation"]]
    roundoff = UNIT_ROUNDOFF[case["dtype"]]
    budget = torch.zeros_like(exact)
    alone = exact
    if case["operation"] == "all_reduce":
        norm = terms.norm(dim=0)
        summing = accumulation(rank.world, exact, norm, roundoff, False)
        if case["dtype"] != "float32":
            summing = 2 * (rank.world - 1) * roundoff * norm
        budget = roundoff * exact.abs() + summing
        alone = terms.to(narrow).sum(0).double()
    found64 = found.detach().double().cpu()
    return {
        "measured": _compared(found64, exact, budget, alone, case),
        "control": _compared(alone, exact, budget, alone, case),
        "digest": hashlib.sha256(found64.numpy().tobytes()).hexdigest(),
    }


def _compared(found: Tensor, exact: Tensor, budget: Tensor, alone: Tensor, case: Case) -> Row:
    """rho is left at 1: two sums of the same few terms, each within its budget, may differ by any factor."""
    row = compare(found, exact, budget, alone, case["dtype"])
    rho = math.inf if row["nonfinite"] else 1.0
    return {**row, "rho": rho, "tensor": "%d elements" % case["size"]}


def _collective(operation: str, own: Tensor, rank: Rank) -> Tensor:
    import torch

    if operation == "all_reduce":
        torch.distributed.all_reduce(own)
    elif operation == "broadcast":
        torch.distributed.broadcast(own, 0)
    else:
        parts = [torch.empty_like(own) for _ in range(rank.world)]
        torch.distributed.all_gather(parts, own)
        return torch.cat(parts)
    return own


def _cases(request: Request, device: str) -> List[Row]:
    return [
        {
            "case": "%s of %d elements" % (operation, size),
            "variant": operation,
            "dtype": dtype,
            "seed": int(request["seed"]),
            "size": size,
            "operation": operation,
        }
        for operation in OPERATIONS
        for size in SIZES
        for dtype in DTYPES
    ]
