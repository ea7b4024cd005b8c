"""Gradients of DistributedDataParallel on two processes.

The gradients of a small network on two ranks are compared with the exact gradients of the same global batch. The
variants are: the default settings; buckets smaller than the network; gradient_as_bucket_view; a static graph;
find_unused_parameters with a layer that is not used; no_sync around all but the last of four backward passes; and
torch's join context with a rank that has no more data. The second rank starts with different weights, which DDP must
replace by the weights of the first rank. A buffer that differs on the second rank, like running statistics, must also
be replaced before the forward pass that reads it. One process of plain torch with the whole batch is the control.

Bound: the relative distance to the float64 gradient, over all parameters or for one parameter, is at most 64 u in
float32 and 16 u in bfloat16 (u = 2^-24 and 2^-8: some dozens of roundings in a gradient of a few layers), and at most
twice the distance of one process. Above 4 times either bound the probe fails. It also fails if a variant raises an
error or leaves the ranks with gradients that differ in a bit. Healthy stacks gave 0.23 and 1.9. A gradient that is
summed and not averaged, or averaged twice, gives 10^4 and more.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free. If a GPU is present, an error on the CPU is
only recorded.

Request: seed, device, dtype (tested in addition to float32), training (skipped if its world_size is 1).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Dict, List, Tuple

from compatcheck.probes._criterion import Case, Measuring, Module, Request, Row, Settings, Stage
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import _toy
from compatcheck.probes.distributed._ranks import judge as judge

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 4.0
ASKED_BY: Tuple[str, ...] = ("training.world_size",)
FRESH = True
RANKS = "few"

TINY_BUCKET = {"bucket_cap_mb": 0.004}
VARIANTS: Tuple[Tuple[str, int, Row], ...] = (
    ("unchanged", 1, {}),
    ("small buckets", 1, TINY_BUCKET),
    ("gradient_as_bucket_view, small buckets", 1, {"gradient_as_bucket_view": True, **TINY_BUCKET}),
    ("static_graph", 1, {"static_graph": True}),
    ("no_sync", 4, {}),
    ("no_sync, gradient_as_bucket_view, small buckets", 4, {"gradient_as_bucket_view": True, **TINY_BUCKET}),
)


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of one way of using DDP and dtype each, and of the control."""
    return _ranks.measure(__file__, request, stage, _cases, several=True)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: one gradient, and how far it is off."""
    import torch

    problem = _toy.problem(case["seed"], case["dtype"], rank.device, case["unused"])
    model = _toy.network(problem).to(rank.device, getattr(torch, case["dtype"]))
    if rank.number:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1)
    devices = None if rank.device == "cpu" else [rank.device]
    if case["drifted"]:
        _add_buffer(model)
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=devices, **case["options"])
    if case["drifted"] and rank.number:
        model.offset.add_(1)
    if case["uneven"]:
        _one_rank_short(parallel, problem, rank)
    else:
        _accumulate(parallel, problem, rank, case["passes"])
    return _toy.answer(_toy.gradients(model), problem)


def _add_buffer(model: Module) -> None:
    """A buffer of zeros, which the network adds to its inputs."""
    weight = next(model.parameters())
    model.register_buffer("offset", weight.new_zeros(_toy.WIDTH))
    model.register_forward_pre_hook(lambda module, inputs: (inputs[0] + module.offset,))


def _accumulate(parallel: Module, problem: _toy.Problem, rank: Rank, passes: int) -> None:
    for number in range(passes):
        data = _toy.part(problem, rank.number * passes + number, rank.world * passes, rank.device)
        last = number == passes - 1
        with contextlib.nullcontext() if last else parallel.no_sync():
            (_toy.loss_of(parallel, data) / passes).backward()


def _one_rank_short(parallel: Module, problem: _toy.Problem, rank: Rank) -> None:
    """Rank 0 takes the whole batch and the other nothing; divided by those who take part, its gradient is exact."""
    import torch

    with parallel.join(divide_by_initial_world_size=False):
        if rank.number == 0:
            _toy.loss_of(parallel, _toy.part(problem, 0, 1, rank.device)).backward()
    for parameter in parallel.parameters():
        if parameter.grad is None:
            parameter.grad = parameter.detach().clone().zero_()
        if rank.number:
            parameter.grad.zero_()
        torch.distributed.all_reduce(parameter.grad)


def joint_cases(request: Request, device: str) -> List[Row]:
    """What ranks on several machines try."""
    return [case for case in _cases({"seed": 0, **request}, device) if case["passes"] == 1 and not case["uneven"]]


def _cases(request: Request, device: str) -> List[Row]:
    dtypes = ("float32",) if request.get("dtype") == "float32" else ("float32", "bfloat16")
    cases = [
        _case(request, variant, passes, dtype, options) for dtype in dtypes for variant, passes, options in VARIANTS
    ]
    cases.append(_case(request, "find_unused_parameters", 1, "float32", {"find_unused_parameters": True}, unused=True))
    cases.append(_case(request, "broadcast_buffers", 1, "float32", {}, drifted=True))
    cases.append(_case(request, "join", 1, "float32", {}, uneven=True))
    return cases


def _case(
    request: Request,
    variant: str,
    passes: int,
    dtype: str,
    options: Settings,
    unused: bool = False,
    uneven: bool = False,
    drifted: bool = False,
) -> Row:
    words = {
        unused: ", one unused layer",
        uneven: ", one rank without data",
        drifted: ", a buffer that differs on the second rank",
    }.get(True, "")
    return {
        "case": _ranks.passes(passes) + words,
        "variant": "DDP, " + variant,
        "dtype": dtype,
        "seed": int(request["seed"]),
        "passes": passes,
        "options": dict(options),
        "unused": unused,
        "uneven": uneven,
        "drifted": drifted,
    }
