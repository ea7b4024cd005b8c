"""Faults of optimiser steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tools.faults._plant import Fault, Plant, replaced


def step(change: Callable[..., None], dtype: str = "") -> Plant:
    """``change(optimizer)`` before every step of torch's AdamW, whose original step follows."""

    @contextmanager
    def plant() -> Iterator[None]:
        import torch

        def make(original: Any) -> Any:
            def candidate(self: Any, *args: Any, **options: Any) -> Any:
                first = self.param_groups[0]["params"][0]
                if not dtype or first.dtype == getattr(torch, dtype):
                    change(self)
                return original(self, *args, **options)

            return candidate

        with replaced(torch.optim.AdamW, "step", make):
            yield

    return plant


def coupled_decay(optimizer: Any) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None and group["weight_decay"]:
                parameter.grad = parameter.grad + 0.1 * parameter.detach()
        group["weight_decay"] = 0.0


def no_bias_correction(optimizer: Any) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            if state:
                state["step"] = state["step"] + 1000


def moments_in_bfloat16(optimizer: Any) -> None:
    for state in optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):
            state[name].copy_(state[name].bfloat16())


def last_parameter_left_out(optimizer: Any) -> None:
    optimizer.param_groups[-1]["params"][-1].grad = None


PROBE = "adamw"
FAULTS = (
    Fault("L2 in the place of decoupled decay", PROBE, step(coupled_decay, "float32"), dtype="float32", quick=True),
    Fault("L2 in the place of decoupled decay", PROBE, step(coupled_decay, "bfloat16"), dtype="bfloat16"),
    Fault("bias correction lost", PROBE, step(no_bias_correction)),
    Fault("moments kept in bfloat16", PROBE, step(moments_in_bfloat16, "float32"), dtype="float32"),
    Fault("one parameter never updated", PROBE, step(last_parameter_left_out)),
)
