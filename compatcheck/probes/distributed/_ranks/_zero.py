"""One optimiser step of a DeepSpeed engine, read back as the gradient it applied.

Plain SGD at a learning rate of 1024: the update over that rate is the gradient, and the rounding of the stored
parameters disappears in it. Clipping is off unless a case says otherwise, and buckets are small, so that the network
fills several. The optimiser is torch's, so that nothing is compiled; DeepSpeed's shared-memory all-reduce, which
serves inference alone, is left out for the same reason (35 s of g++).
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Dict, Sequence

from compatcheck.probes._criterion import Case, Module, Request, Row, Settings
from compatcheck.probes.distributed._ranks import _run, _toy
from compatcheck.probes.distributed._ranks._rank import Rank

STAGES = (0, 1, 2, 3)
NEEDS = {"torch": ">=1.13", "deepspeed": ">=0.10"}
RATE = 1024.0
BUCKET = 1500
SMALL = {
    "reduce_bucket_size": BUCKET,
    "allgather_bucket_size": BUCKET,
    "stage3_param_persistence_threshold": 0,
    "stage3_prefetch_bucket_size": BUCKET,
    "stage3_max_live_parameters": BUCKET,
}
WAYS = ("managed", "boundary", "bare")
OWN_SETTINGS = (
    "overlap_comm",
    "contiguous_gradients",
    "reduce_scatter",
    "round_robin_gradients",
    "allgather_partitions",
    "use_multi_rank_bucket_allreduce",
)


def environ(device: str) -> Dict[str, str]:
    """What the ranks need to have DeepSpeed work on that device."""
    return {"DS_ACCELERATOR": "cpu"} if device == "cpu" else {}


def gradient(
    of: _toy.Problem, case: Case, rank: Rank, reading: Callable[[], Any] = contextlib.nullcontext
) -> _toy.Gradients:
    """The mean gradient that one step applied; the parameters are read inside the context that ``reading`` gives.

    ``case``: stage; zero (other keys of zero_optimization); config (other keys of the configuration); passes (backward
    passes a rank makes for the step, default 1) and way: managed (gradient_accumulation_steps is passes, backward and
    step each time), boundary (gradient_accumulation_steps 1, set_gradient_accumulation_boundary, one step at the
    end), bare (the same without it). init: build the network inside zero.Init.
    """
    passes, way = int(case.get("passes", 1)), str(case.get("way", "managed"))
    engine = _engine(of, case, rank, passes if way == "managed" else 1)
    with reading():
        before = _parameters(engine, case)
    for number in range(passes):
        data = _toy.part(of, rank.number * passes + number, rank.world * passes, rank.device)
        if way == "boundary":
            engine.set_gradient_accumulation_boundary(number == passes - 1)
        engine.backward(_toy.loss_of(engine, data))
        if way == "managed" or number == passes - 1:
            engine.step()
    with reading():
        after = _parameters(engine, case)
    divisor = RATE * (1 if way == "managed" else passes)
    getattr(engine, "destroy", lambda: None)()
    return {name: (before[name] - after[name]) / divisor for name in before}


def _engine(of: _toy.Problem, case: Case, rank: Rank, accumulation: int) -> Module:
    import torch

    deepspeed = joined(rank)
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": accumulation,
        "gradient_clipping": 0.0,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": {"stage": case["stage"], **SMALL, **case.get("zero", {})},
        "steps_per_print": 10**9,
        **({} if of.dtype == "float32" else {_SECTIONS[of.dtype]: {"enabled": True}}),
        **case.get("config", {}),
    }
    kept = {key: value for key, value in config.items() if value is not None}
    model = _inside_init(deepspeed, of, kept) if case.get("init") else _toy.network(of)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    return deepspeed.initialize(model=model, optimizer=optimizer, config=kept)[0]


def course(of: _run.Trial, case: Case, rank: Rank) -> _run.Course:
    """The course that training takes: stage, zero, passes and clip of the case; buckets are those of `_run`."""
    import torch

    deepspeed = joined(rank)
    tiny = {key: _run.BUCKET for key in SMALL if key.endswith("size")}
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": case["passes"],
        "gradient_clipping": case["clip"],
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": {"stage": case["stage"], **SMALL, **tiny, **case["zero"]},
        "steps_per_print": 10**9,
        **({} if of.dtype == "float32" else {_SECTIONS[of.dtype]: {"enabled": True}}),
    }
    model = _run.network(case["seed"], of.dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=_run.RATE, momentum=_run.MOMENTUM)
    engine = deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]
    sizes = []
    for step in range(_run.STEPS):
        rank.mark("%s, %s, step %d" % (case["variant"], of.dtype, step + 1))
        for number in range(case["passes"]):
            engine.backward(_run.loss_of(engine, of, step, rank.number * case["passes"] + number, rank.device))
            engine.step()
        size = engine.get_global_grad_norm()
        sizes.append(None if size is None else float(size))
    end = _parameters(engine, case)
    getattr(engine, "destroy", lambda: None)()
    return _run.Course(sizes, end)


_SECTIONS = {"bfloat16": "bf16", "float16": "fp16"}


def joined(rank: Rank) -> Any:
    """DeepSpeed, its communication standing on the ranks' process group."""
    import deepspeed

    if rank.device == "cpu":
        sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # type: ignore[attr-defined]
    deepspeed.init_distributed(dist_backend=rank.backend, verbose=False)
    return deepspeed


def _inside_init(deepspeed: Any, of: _toy.Problem, config: Settings) -> Module:
    """The network with its parameters partitioned as they are made, then given their values."""
    values = dict(_toy.network(of).named_parameters())
    with deepspeed.zero.Init(config_dict_or_path=dict(config)):
        model = _toy.bare(of)
    with deepspeed.zero.GatheredParameters(list(model.parameters()), modifier_rank=0):
        for name, parameter in model.named_parameters():
            parameter.data.copy_(values[name].data)
    return model


def _parameters(engine: Module, case: Case) -> _toy.Gradients:
    """The parameters the optimiser steps, in float64 on the CPU: the wide copies where there are some."""
    import deepspeed
    from deepspeed.utils import safe_get_full_fp32_param

    found = {}
    for name, parameter in engine.module.named_parameters():
        value = safe_get_full_fp32_param(parameter)
        if value is None and case["stage"] == 3:
            with deepspeed.zero.GatheredParameters(parameter):
                value = parameter.detach().clone()
        found[name] = (parameter if value is None else value).detach().double().cpu().clone()
    return found


def stages(request: Request) -> Sequence[int]:
    """The stages asked for, else that of the training, else all."""
    section = (request.get("training") or {}).get("deepspeed") or {}
    return request.get("stages") or ([int(section["zero_stage"])] if "zero_stage" in section else STAGES)


def dtypes(request: Request) -> Sequence[str]:
    """float32 and the user's own dtype; bfloat16 where that is not known, or is one the CPU accelerator refuses."""
    wanted = request.get("dtype")
    return ("float32",) if wanted == "float32" else ("float32", "bfloat16")


def own_settings(section: Settings) -> Row:
    """What the user's section says of how gradients are reduced and where states live."""
    own = {key: section[key] for key in OWN_SETTINGS if isinstance(section.get(key), bool)}
    for key in ("offload_optimizer", "offload_param"):
        if section.get(key + "_device") == "cpu":
            own[key] = {"device": "cpu"}
    return own


def passes(wanted: Any) -> int:
    """2 or 4: parts of equal size, enough to tell a sum from its last term."""
    return 2 if isinstance(wanted, (int, float)) and wanted == 2 else 4
