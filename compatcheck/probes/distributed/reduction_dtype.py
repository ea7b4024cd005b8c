"""The dtype in which gradients are reduced: the dtype requested, the dtype used, and its cost.

Two ranks train a small network for one step under DistributedDataParallel, FSDP, FSDP2 and DeepSpeed's ZeRO. Every
collective that carries gradients is recorded with the dtype that torch.distributed gets. These settings are requested
in turn: weights in float32 (sums in float32); weights in bfloat16 (DDP sums in bfloat16);
`MixedPrecision(reduce_dtype=...)` of FSDP in float32 and bfloat16; `MixedPrecisionPolicy` of FSDP2 in the same dtypes;
the bf16 compression hook of DDP; and `communication_data_type` of ZeRO.

Bound: the dtype that is used must be the requested dtype. In addition, the error of the gradient is measured against
float64: at most 64 u in float32 and 16 u in 16 bits, with u the roundoff of the wider of the requested reduction dtype
and the dtype of the weights. A failure means that a setting is accepted and ignored: gradients lose bits in every step
although float32 was requested, or float32 causes twice the traffic of the requested bfloat16. A sum in 16 bits is a
fact and not a fault if nothing else was requested.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free.

Request: seed, device, ways (of ddp, fsdp, fsdp2 and zero; default all), training (skipped if its world_size is 1).
"""

from __future__ import annotations

import contextlib
import importlib.util
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Case, Measuring, Module, Request, Row, Stage
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import _toy, _zero
from compatcheck.probes.distributed._ranks import judge as judge

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 12.0
ASKED_BY: Tuple[str, ...] = ("training.fsdp", "training.deepspeed")
FRESH = True
RANKS = "few"

LEAST_ELEMENTS = 64
"""A collective of fewer carries a norm or a flag, no gradients."""
LACKING = (
    "not support",
    "unsupported",
    "not implemented",
    "No backend type",
    "has no attribute",
    "needs a non-CPU accelerator",
    "required CUDA",
)


def measure(request: Request, stage: Stage) -> Measuring:
    """A row of each way of training and dtype asked, and of the control."""
    return _ranks.measure(__file__, request, stage, joint_cases, _zero.environ, several=True)


def work(case: Case, rank: Rank) -> Row:
    """In each rank: one gradient, and in which dtype it was reduced."""
    problem = _toy.problem(case["seed"], case["weights"], rank.device)
    fine = {"tensor": "reduction", "theta": 0.0, "rho": 0.0, "nonfinite": 0}
    watch = _Watch()
    try:
        with watch.on():
            found = WAYS[case["way"]](case, problem, rank, watch)
    except (_Absent, RuntimeError, AttributeError, TypeError) as error:
        told = str(error).strip().split("\n")[0][:160]
        if not isinstance(error, _Absent) and not any(word in told for word in LACKING):
            raise
        return {"measured": {**fine, "recorded": told}, "control": fine, "digest": ""}
    dtypes = sorted({dtype for dtype, size in watch.seen if size >= LEAST_ELEMENTS})
    row = {**_toy.compare(found, problem), "reduced_in": dtypes, "asked": case["asked"]}
    roundoff = max(UNIT_ROUNDOFF[case["asked"]], UNIT_ROUNDOFF[case["weights"]])
    bound = _toy.ROUNDINGS["float32" if roundoff < 2.0**-20 else "bfloat16"] * roundoff
    share = row["theta"] * _toy.ROUNDINGS[case["weights"]] * UNIT_ROUNDOFF[case["weights"]]
    row.update(theta=share / bound, rho=0.0, error_share=share)
    if dtypes != [case["asked"]]:
        told = " and ".join(dtypes) or "no visible collective"
        says = "gradients are reduced in %s instead of the requested %s: off by %.2g of their size"
        says %= (told, case["asked"], share)
        row.update(tensor="dtype of the reduction", theta=float("inf") if dtypes else 2.0, says=says)
    return {"measured": row, "control": _toy.compare(problem.baseline, problem), "digest": ""}


class _Absent(Exception):
    """A way of training is not to be had here."""


class _Watch:
    """The dtype and size of each tensor that goes into a reducing collective, from C++ as from Python."""

    def __init__(self) -> None:
        self.seen: List[Tuple[str, int]] = []
        self.is_paused = False

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Watch inside."""
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        watch = self

        class Mode(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if not watch.is_paused and "c10d" in str(function) and "reduce" in str(function):
                    watch.seen.extend(_carried(args, torch))
                return function(*args, **(kwargs or {}))

        with Mode():
            yield

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Watch nothing inside, as where parameters are read that are spread over ranks."""
        self.is_paused = True
        try:
            yield
        finally:
            self.is_paused = False


def _carried(value: Any, torch: Any) -> Iterator[Tuple[str, int]]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _carried(each, torch)
    elif isinstance(value, torch.Tensor) and value.is_floating_point():
        yield str(value.dtype).replace("torch.", ""), value.numel()


def _ddp(case: Case, of: _toy.Problem, rank: Rank, watch: _Watch) -> _toy.Gradients:
    """``hook`` names a communication hook of torch."""
    import torch

    model = _toy.network(of).to(rank.device, getattr(torch, of.dtype))
    devices = None if rank.device == "cpu" else [rank.device]
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=devices)
    if case.get("hook"):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        parallel.register_comm_hook(None, getattr(default_hooks, case["hook"]))
    _backward(parallel, of, rank)
    return _toy.gradients(model)


def _fsdp(case: Case, of: _toy.Problem, rank: Rank, watch: _Watch) -> _toy.Gradients:
    import torch
    from torch.distributed import fsdp

    model = _toy.network(of).to(rank.device, getattr(torch, of.dtype))
    precision = fsdp.MixedPrecision(reduce_dtype=getattr(torch, case["asked"]))
    parallel = fsdp.FullyShardedDataParallel(model, mixed_precision=precision, use_orig_params=True)
    _backward(parallel, of, rank)
    with watch.paused(), fsdp.FullyShardedDataParallel.summon_full_params(parallel, with_grads=True):
        return {name.replace("_fsdp_wrapped_module.", ""): each for name, each in _toy.gradients(parallel).items()}


def _fsdp2(case: Case, of: _toy.Problem, rank: Rank, watch: _Watch) -> _toy.Gradients:
    import torch

    try:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    except ImportError as error:
        raise _Absent("this torch has no fully_shard") from error
    model = _toy.network(of).to(rank.device, getattr(torch, of.dtype))
    mesh = torch.distributed.device_mesh.init_device_mesh(rank.device.partition(":")[0], (rank.world,))
    fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(reduce_dtype=getattr(torch, case["asked"])))
    _backward(model, of, rank)
    return {
        name: each.grad.full_tensor().detach().double().cpu()
        for name, each in model.named_parameters()
        if each.grad is not None
    }


def _backward(model: Module, of: _toy.Problem, rank: Rank) -> None:
    _toy.loss_of(model, _toy.part(of, rank.number, rank.world, rank.device)).backward()


def _deepspeed(case: Case, of: _toy.Problem, rank: Rank, watch: _Watch) -> _toy.Gradients:
    return _zero.gradient(of, case, rank, watch.paused)


WAYS = {"ddp": _ddp, "fsdp": _fsdp, "fsdp2": _fsdp2, "zero": _deepspeed}


def joint_cases(request: Request, device: str) -> List[Row]:
    """DDP, both kinds of FSDP, and ZeRO where DeepSpeed is installed."""
    wide, narrow = "float32", "bfloat16"
    cases = [
        _case(request, "DDP, weights in float32", "ddp", wide, wide),
        _case(request, "DDP, weights in bfloat16", "ddp", narrow, narrow),
        _case(request, "DDP, bf16_compress_hook", "ddp", wide, narrow, hook="bf16_compress_hook"),
    ]
    for way, name in (("fsdp", "FSDP, MixedPrecision"), ("fsdp2", "FSDP2, MixedPrecisionPolicy")):
        for weights, asked in ((wide, wide), (wide, narrow), (narrow, wide), (narrow, narrow)):
            words = "%s(reduce_dtype=%s), weights in %s" % (name, asked, weights)
            cases.append(_case(request, words, way, weights, asked))
    for stage in (1, 2, 3) if importlib.util.find_spec("deepspeed") else ():
        for weights, asked, key in ((wide, wide, None), (narrow, narrow, None), (narrow, wide, "fp32")):
            told = "communication_data_type %s, " % key if key else ""
            words = "ZeRO-%d, %sweights in %s" % (stage, told, weights)
            config = {"communication_data_type": key} if key else {}
            cases.append(_case(request, words, "zero", weights, asked, stage=stage, config=config))
    return [case for case in cases if case["way"] in (request.get("ways") or WAYS)]


def _case(request: Request, variant: str, way: str, weights: str, asked: str, **rest: Any) -> Row:
    return {
        "case": "one step",
        "variant": variant,
        "dtype": weights,
        "seed": int(request.get("seed", 0)),
        "way": way,
        "weights": weights,
        "asked": asked,
        **rest,
    }
