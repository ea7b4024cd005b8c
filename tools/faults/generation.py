"""Faults of generation: a cache that is read or written wrongly, and a mask that is lost."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tools.faults._plant import Fault, Plant, replaced

PROBE = "rollout_logprobs"
NEEDS = ("transformers",)
F32 = {"dtype": "float32"}


def read_from_cache(change: Callable[[Any, Any], tuple[Any, Any]]) -> Plant:
    """``change(keys, values)`` wherever one token reads the keys and values before it."""

    def plant() -> AbstractContextManager[None]:
        from transformers.cache_utils import DynamicLayer

        def make(original: Any) -> Any:
            def update(self: Any, key_states: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
                keys, values = original(self, key_states, *args, **options)
                return change(keys, values) if key_states.shape[-2] == 1 else (keys, values)

            return update

        return replaced(DynamicLayer, "update", make)

    return plant


def one_place_off(keys: Any, values: Any) -> tuple[Any, Any]:
    return keys.roll(1, -2), values


def newest_value_lost(keys: Any, values: Any) -> tuple[Any, Any]:
    values = values.clone()
    values[..., -1, :] = 0
    return keys, values


def sixteen_bits(keys: Any, values: Any) -> tuple[Any, Any]:
    return keys.bfloat16().to(keys.dtype), values.bfloat16().to(values.dtype)


def mask_lost() -> AbstractContextManager[None]:
    from transformers import LlamaForCausalLM

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def forward(self: Any, *args: Any, **options: Any) -> Any:
            if options["input_ids"].shape[-1] == 1:
                options["attention_mask"] = None
            return original(self, *args, **options)

        return forward

    return replaced(LlamaForCausalLM, "forward", make)


FAULTS = (
    Fault("keys of the cache are one place off", PROBE, read_from_cache(one_place_off), F32, needs=NEEDS),
    Fault("value of the newest token lost", PROBE, read_from_cache(newest_value_lost), F32, needs=NEEDS),
    Fault("cache kept in 16 bits", PROBE, read_from_cache(sixteen_bits), F32, needs=NEEDS),
    Fault("mask lost once a cache is filled", PROBE, mask_lost, F32, needs=NEEDS),
)
