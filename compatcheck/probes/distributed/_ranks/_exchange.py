"""One collective over growing buffers, and how far what it gives is from what the ranks put in.

Buffers repeat a pattern of 251 elements, a prime, so that the exact result is known from one period and a block that
lands in another's place does not fit. In sums each rank adds whole numbers of its own, so small that all partial sums
are exact in the dtype in whatever order; with many ranks each adds to some elements alone.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from typing import Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Case, Module, Row, Tensor, accumulation, compare
from compatcheck.probes.distributed._ranks._rank import Rank

PERIOD = 251
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
SUMS = ("all_reduce", "reduce_scatter")
SAME_EVERYWHERE = ("all_reduce", "all_gather", "broadcast")
SIZES = tuple(1024 * 4**step for step in range(10))
LARGEST_EXACT = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8}
GROWTH = 4.0
LATENCY_BOUND = 2**18
PIECE_PERIODS = 4096
BUFFERS = 6


def over_sizes(case: Case, rank: Rank) -> Row:
    """The row of the worst, with each size that was tried, and the digest of what all ranks have to share."""
    worst: Row = {}
    control = _row(0.0, 1.0, "one process")
    digest, sizes = hashlib.sha256(), []
    started, last = time.monotonic(), 0.0
    for size in SIZES:
        spent = time.monotonic() - started
        growth = GROWTH if size > LATENCY_BOUND else 1.0
        if not rank.decide(spent + growth * last <= case["seconds"] and _fits(size, rank)):
            break
        before = time.monotonic()
        for kind in ("whole", "drawn") if case["operation"] in SUMS else ("whole",):
            found = _tried(case, rank, size, kind)
            if isinstance(found, str):
                return {"measured": {**control, "recorded": found}, "control": control, "digest": ""}
            row, speed, bits, alone = found
            control = alone if alone["theta"] > control["theta"] else control
            digest.update(bits)
            worst = row if not worst or row["theta"] > worst["theta"] else worst
        last = time.monotonic() - before
        sizes.append({"bytes": size, "bus_bytes_per_second": round(speed)})
    result = {**worst, "rank": rank.number, "sizes": sizes, "not_run": list(SIZES[len(sizes) :])}
    shared = digest.hexdigest() if case["operation"] in SAME_EVERYWHERE else ""
    return {"measured": result, "control": control, "digest": shared}


def _fits(size: int, rank: Rank) -> bool:
    """Whether this machine has room for the buffers of all its ranks; told for Linux alone, as GPUs have room."""
    if rank.device != "cpu" or not os.path.exists("/proc/meminfo"):
        return True
    with open("/proc/meminfo", encoding="ascii") as stream:
        free = next((int(line.split()[1]) << 10 for line in stream if line.startswith("MemAvailable")), 0)
    return BUFFERS * size * int(os.environ.get("LOCAL_WORLD_SIZE", rank.world)) < free


def _tried(case: Case, rank: Rank, size: int, kind: str) -> Tensor:
    """The row of one size, its speed, the result's bits and the control's row; a text where the backend has no such."""
    import torch

    narrow = getattr(torch, case["dtype"])
    parts = _parts(case, rank, kind)
    width = 2 if case["dtype"] != "float32" else 4
    count = max(size // width // rank.world, 1) * rank.world
    own, exact, budget = _buffers(case["operation"], parts, rank, count)
    source = _tiled(own.to(narrow), count if case["operation"] != "all_gather" else count // rank.world, rank.device)
    first, seconds, row = None, [], _row(0.0, 1.0, "")
    for number in range(_rounds(size)):
        rank.mark("%s of %s, %s, round %d" % (case["operation"], size_label(size), case["dtype"], number + 1))
        given = source.clone()
        before = time.monotonic()
        try:
            found = _collective(case["operation"], given, rank)
        except (RuntimeError, NotImplementedError) as error:
            if "support" in str(error) and number == 0:
                return "%s has no %s for this: %s" % (rank.backend, case["operation"], str(error).splitlines()[0][:120])
            raise
        _settle(rank)
        seconds.append(time.monotonic() - before)
        if first is None:
            first = found
            row = _compare_parts(case, rank, size, found, exact, budget, kind)
        elif not torch.equal(_bits(first), _bits(found)):
            says = "repeating %s of %s in %s on rank %d gave different results in round %d from the same input"
            result = says % (case["operation"], size_label(size), case["dtype"], rank.number, number + 1)
            row = {**_row(math.inf, math.inf, "a repetition"), "says": result}
    bits = _bits(first).cpu().numpy().tobytes()
    control = _control(case, parts, exact, budget) if case["operation"] in SUMS else _row(0.0, 1.0, "one process")
    moved = count * width * _share(case["operation"], rank.world)
    return row, moved / max(sorted(seconds)[len(seconds) // 2], 1e-9), hashlib.sha256(bits).digest(), control


def _parts(case: Case, rank: Rank, kind: str) -> Tensor:
    """What each rank puts into one period: float64 of world x 251, exact in the dtype."""
    import torch

    place = torch.arange(PERIOD)
    who = torch.arange(rank.world)[:, None]
    if kind == "drawn":
        generator = torch.Generator().manual_seed(case["seed"])
        drawn = torch.randn(rank.world, PERIOD, generator=generator, dtype=torch.float64)
        return drawn.to(getattr(torch, case["dtype"])).double()
    if case["operation"] not in SUMS:
        return ((place + 37 * who) % PERIOD - PERIOD // 2).double()
    largest = LARGEST_EXACT[case["dtype"]]
    most = max(1, min(3, largest // rank.world))
    every = math.ceil(rank.world * most / largest)
    numbers = ((place + 1) * (who + 1) % PERIOD) % (2 * most + 1) - most
    return torch.where((who + place) % every == 0, numbers, torch.zeros_like(numbers)).double()


def _buffers(operation: str, parts: Tensor, rank: Rank, count: int) -> Tuple[Tensor, Tensor, Tensor]:
    """One period of what this rank puts in; the exact result, and its budget, by period or block by block."""
    import torch

    zero = torch.zeros(PERIOD, dtype=torch.float64)
    own, block = parts[rank.number], count // rank.world
    if operation == "all_reduce":
        return own, [(parts.sum(0), 0, count)], parts.norm(dim=0)
    if operation == "reduce_scatter":
        start = rank.number * block % PERIOD
        return own, [(parts.sum(0).roll(-start), 0, block)], parts.norm(dim=0).roll(-start)
    if operation == "broadcast":
        return own, [(parts[0], 0, count)], zero
    if operation == "all_gather":
        return own, [(parts[each], each * block, block) for each in range(rank.world)], zero
    start = rank.number * block % PERIOD
    return own, [(parts[each].roll(-start), each * block, block) for each in range(rank.world)], zero


def _tiled(period: Tensor, count: int, device: str) -> Tensor:
    return period.repeat(count // PERIOD + 1)[:count].to(device)


def _collective(operation: str, given: Tensor, rank: Rank) -> Tensor:
    import torch

    distributed = torch.distributed
    if operation == "all_reduce":
        distributed.all_reduce(given)
        return given
    if operation == "broadcast":
        distributed.broadcast(given, 0)
        return given
    if operation == "reduce_scatter":
        found = given.new_zeros(given.numel() // rank.world)
        scatter = getattr(distributed, "reduce_scatter_tensor", None) or distributed._reduce_scatter_base
        scatter(found, given)
    elif operation == "all_gather":
        found = given.new_zeros(given.numel() * rank.world)
        distributed.all_gather(list(found.chunk(rank.world)), given)
    else:
        found = torch.zeros_like(given)
        distributed.all_to_all_single(found, given)
    return found


def _settle(rank: Rank) -> None:
    import torch

    if rank.device != "cpu":
        torch.cuda.synchronize()


def _compare_parts(case: Case, rank: Rank, size: int, found: Tensor, exact: Tensor, norm: Tensor, kind: str) -> Row:
    """The row of one result: whole numbers are right or wrong, drawn ones within their budget."""

    tensor = "%s, %s numbers" % (size_label(size), kind)
    worst = _row(0.0, 1.0, tensor)
    for period, start, length in exact:
        block = found[start : start + length]
        if kind == "drawn":
            row = {**_within(case, rank, block, period, norm), "tensor": tensor}
            worst = row if row["theta"] > worst["theta"] else worst
            continue
        wanted = _tiled(period.to(found.dtype), length, rank.device)
        wrong = (block != wanted).nonzero().flatten()
        if len(wrong):
            at = int(wrong[0])
            says = "%s of %s in %s is wrong on rank %d: %d of %d elements, the first %g for %g%s"
            values = (float(block[at]), float(wanted[at]))
            result = (case["operation"], size_label(size), case["dtype"], rank.number, len(wrong), length, *values)
            guess = _missing_part(case, rank, block, period, length)
            return {**_row(math.inf, math.inf, tensor), "says": says % (*result, guess)}
    return worst


def _within(case: Case, rank: Rank, block: Module, period: Tensor, norm: Tensor) -> Row:
    """The worst row over pieces of whole periods; the sum of one process has its own row."""
    worst = _row(0.0, 1.0, "%s, drawn numbers" % case["operation"])
    for piece in block.detach().split(PERIOD * PIECE_PERIODS):
        result = piece.double().cpu()
        exact, size = _tiled(period, len(result), "cpu"), _tiled(norm, len(result), "cpu")
        row = compare(result, exact, _budget(case, rank.world, exact, size), exact, case["dtype"])
        worst = {**worst, **row} if row["theta"] > worst["theta"] else worst
    return {**worst, "rho": math.inf if worst["nonfinite"] else 1.0}


def _budget(case: Case, world: int, exact: Tensor, norm: Tensor) -> Tensor:
    roundoff = UNIT_ROUNDOFF[case["dtype"]]
    if case["dtype"] == "float32":
        return roundoff * exact.abs() + accumulation(world, exact, norm, roundoff, False)
    return roundoff * exact.abs() + 2 * (world - 1) * roundoff * norm


def _control(case: Case, parts: Tensor, exact: Tensor, norm: Tensor) -> Row:
    """The sum of the same parts in one process."""
    import torch

    alone = parts.to(getattr(torch, case["dtype"])).sum(0).double()
    total = parts.sum(0)
    row = compare(alone, total, _budget(case, len(parts), total, parts.norm(dim=0)), total, case["dtype"])
    return {**row, "rho": 1.0, "tensor": "one process"}


def _missing_part(case: Case, rank: Rank, block: Module, period: Tensor, length: int) -> str:
    """Whose part the sum lacks, where it is the sum of all others."""
    if case["operation"] != "all_reduce" or length < PERIOD:
        return ""
    lacks = period - block[:PERIOD].detach().double().cpu()
    parts = _parts(case, rank, "whole")
    missing = [number for number in range(rank.world) if bool((parts[number] == lacks).all())]
    return "; the sum is missing the contribution of rank %d" % missing[0] if missing else ""


def _bits(tensor: Tensor) -> Tensor:
    import torch

    return tensor.view(torch.int32 if tensor.dtype == torch.float32 else torch.int16)


def _share(operation: str, world: int) -> float:
    """The bus's share of a buffer's bytes, as the NCCL tests count it."""
    if operation == "broadcast":
        return 1.0
    return (2.0 if operation == "all_reduce" else 1.0) * (world - 1) / world


def _rounds(size: int) -> int:
    return 8 if size < 2**20 else 4 if size < 2**24 else 2


def _row(theta: float, rho: float, tensor: str) -> Row:
    return {"theta": theta, "rho": rho, "tensor": tensor, "nonfinite": 0}


def size_label(size: int) -> str:
    return "%d KiB" % (size >> 10) if size < 2**20 else "%d MiB" % (size >> 20)
