"""Faults of gradient checkpointing: what a block is recomputed with, and what becomes of its gradient."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tools.faults._plant import MISSED, Fault, Plant, replaced
from tools.faults.models import NEEDS, method

PROBE = "gradient_checkpointing"
WHERE = "transformers.modeling_utils"
DROPOUT = {"config": {"model_type": "llama", "attention_dropout": 0.1}}
AUTOCAST = {"training": {"mixed_precision": "bf16"}}


def recomputed(change: Any) -> Plant:
    """``change(original, number, work, *args, **options)`` in the place of torch's checkpoint; calls are numbered."""

    def plant() -> AbstractContextManager[None]:
        import transformers.modeling_utils as library

        numbers = itertools.count()

        def make(original: Any) -> Any:
            return lambda work, *args, **options: change(original, next(numbers), work, *args, **options)

        return replaced(library, "checkpoint", make)

    return plant


def twice(work: Any, second: Any) -> Any:
    """``work`` in the forward pass, ``second`` where it is recomputed."""
    calls: list[int] = []

    def call(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return (work if len(calls) == 1 else second)(*args, **options)

    return call


def random_state_not_restored(original: Any, number: int, work: Any, *args: Any, **options: Any) -> Any:
    return original(work, *args, **{**options, "preserve_rng_state": False})


def mask_lost(original: Any, number: int, work: Any, *args: Any, **options: Any) -> Any:
    """Keywords of the block do not reach its second pass; without re-entry torch notices it itself."""
    kept = getattr(work, "keywords", {})
    if "attention_mask" not in kept or not options.get("use_reentrant"):
        return original(work, *args, **options)
    unmasked = {**kept, "attention_mask": None}
    return original(twice(work, lambda *given: work.func(*work.args, *given, **unmasked)), *args, **options)


def autocast_forgotten(original: Any, number: int, work: Any, *args: Any, **options: Any) -> Any:
    import torch

    if not options.get("use_reentrant"):
        return original(work, *args, **options)

    def plainly(*given: Any, **more: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return work(*given, **more)

    return original(twice(work, plainly), *args, **options)


def gradient_counted_twice(original: Any, number: int, work: Any, *args: Any, **options: Any) -> Any:
    def change(out: Any) -> Any:
        return 2 * out - out.detach() if hasattr(out, "detach") else out

    out = original(work, *args, **options)
    return tuple(map(change, out)) if isinstance(out, tuple) else change(out)


def every_second_block(original: Any, number: int, work: Any, *args: Any, **options: Any) -> Any:
    return work(*args) if number % 2 else original(work, *args, **options)


def inputs_take_no_gradient(original: Any, model: Any, *args: Any, **options: Any) -> None:
    return None


@contextmanager
def narrow_recomputation() -> Iterator[None]:
    """What is recomputed is computed in bfloat16."""

    def change(original: Any, number: int, work: Any, *args: Any, **options: Any) -> Any:
        import torch

        if not options.get("use_reentrant"):
            return original(work, *args, **options)

        def narrowly(*given: Any, **more: Any) -> Any:
            with torch.autocast("cpu", torch.bfloat16):
                out = work(*given, **more)
            return tuple(each.to(given[0].dtype) for each in out) if isinstance(out, tuple) else out.to(given[0].dtype)

        return original(twice(work, narrowly), *args, **options)

    with recomputed(change)():
        yield


SINGLE = {"training": {"dtype": "float32"}}
FAULTS = (
    Fault(
        "random state not restored for recomputing", PROBE, recomputed(random_state_not_restored), DROPOUT, needs=NEEDS
    ),
    Fault("attention mask lost in recomputing", PROBE, recomputed(mask_lost), SINGLE, needs=NEEDS),
    Fault(
        "autocast forgotten in recomputing",
        PROBE,
        recomputed(autocast_forgotten),
        AUTOCAST,
        MISSED,
        below="float32 in the place of bfloat16 changes less than autocast rounds",
        needs=NEEDS,
    ),
    Fault("blocks recomputed in bfloat16", PROBE, narrow_recomputation, SINGLE, needs=NEEDS),
    Fault("gradient of a block counted twice", PROBE, recomputed(gradient_counted_twice), needs=NEEDS),
    Fault("every second block kept", PROBE, recomputed(every_second_block), needs=NEEDS),
    Fault(
        "enable_input_require_grads has no effect",
        PROBE,
        method("transformers", "PreTrainedModel.enable_input_require_grads", inputs_take_no_gradient),
        needs=NEEDS,
    ),
)
