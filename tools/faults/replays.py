"""Faults that do not repeat: what differs from one run of the same step to the next."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tools.faults._plant import WATCHED, Call, Fault, Plant, altered
from tools.faults.models import LLAMA, NEEDS, method
from tools.faults.optimizers import step

PROBE = "step_replay"


def counted(alter: Callable[[Call, int], Any], *operators: str) -> Plant:
    """``alter(call, number)`` in the place of what the operators return; the number is that of the call."""

    def plant() -> AbstractContextManager[Any]:
        numbers = itertools.count()
        return altered(operators, lambda call: alter(call, next(numbers)))()

    return plant


def lowest_bit_of_one_in_97(call: Call, number: int) -> Any:
    import torch

    if number % 97:
        return call.out
    out = call.out.clone().contiguous()
    bits = out.view(-1)[:1].view(torch.int32 if out.element_size() == 4 else torch.int16)
    bits ^= 1
    return out


def one_row_from_before(call: Call, number: int) -> Any:
    """Memory that is read before it is written holds what the last user left."""
    if number % 29 or call.out.dim() < 2:
        return call.out
    out = call.out.clone()
    out[-1] = out[0]
    return out


def summed_in_any_order(call: Call, number: int) -> Any:
    """What atomic additions do: the last bits of one row change from run to run, unless order is asked for."""
    import torch

    if torch.are_deterministic_algorithms_enabled():
        return call.out
    out = call.out.clone()
    out[number % 7 + 3] *= 1 + 2.0**-7
    return out


def unseeded_dropout(original: Any, self: Any, hidden: Any) -> Any:
    import torch

    generator = torch.Generator()
    generator.seed()
    out = original(self, hidden)
    if out.dtype == torch.float64:
        return out
    kept = torch.rand(out.shape, generator=generator) >= 0.01
    return out * kept.to(out.dtype).to(out.device)


def split_by_parity(call: Call, number: int) -> Any:
    """A kernel that is chosen by timing: one product in seven is summed in two halves."""
    if number % 7 or len(call.args) < 2:
        return call.out
    first, second = call.args[-2:]
    half = first.shape[-1] // 2
    return call.func(first[:, :half], second[:half]) + call.func(first[:, half:], second[half:])


@contextmanager
def rate_from_the_clock() -> Iterator[None]:
    """An optimizer that keeps count over all models of the process."""
    numbers = itertools.count(1)

    def change(optimizer: Any) -> None:
        number = next(numbers)
        for group in optimizer.param_groups:
            group["lr"] *= 1 + 1.0 / number

    with step(change, "bfloat16")():
        yield


@contextmanager
def buffers_shared() -> Iterator[None]:
    """A table that all models of the process share, and one of them writes to."""
    numbers = itertools.count(1)

    def change(original: Any, self: Any, *args: Any, **options: Any) -> Any:
        cos, sin = original(self, *args, **options)
        if cos.element_size() == 8:
            return cos, sin
        return cos, sin * (1 + 0.01 * next(numbers))

    with method(LLAMA, "LlamaRotaryEmbedding.forward", change)():
        yield


FAULTS = (
    Fault("lowest bit of one product in 97", PROBE, counted(lowest_bit_of_one_in_97, "mm", "addmm"), needs=NEEDS),
    Fault("one row of a product in 29 left from before", PROBE, counted(one_row_from_before, "mm"), needs=NEEDS),
    Fault("kernel chosen by timing", PROBE, counted(split_by_parity, "mm"), needs=NEEDS),
    Fault("dropout that no seed reaches", PROBE, method(LLAMA, "LlamaMLP.forward", unseeded_dropout), needs=NEEDS),
    Fault("state kept from step to step", PROBE, rate_from_the_clock, needs=NEEDS),
    Fault("table that models share", PROBE, buffers_shared, needs=NEEDS, quick=True),
    Fault(
        "sums in any order, as documented",
        PROBE,
        counted(summed_in_any_order, "embedding_dense_backward"),
        {},
        WATCHED,
        below="torch.use_deterministic_algorithms lists it and cures it",
        needs=NEEDS,
    ),
)
