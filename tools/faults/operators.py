"""Faults of matrix products: precision, dropped terms, flipped bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.faults._plant import MISSED, WATCHED, Call, Fault, altered

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")


def cut_to_tf32(call: Call) -> Any:
    return call.again(*(_cut(each) if hasattr(each, "dim") else each for each in call.args))


def _cut(value: Any) -> Any:
    import torch

    bits = value.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def partial_sums_in_narrow(call: Call) -> Any:
    """Four partial sums, each rounded to the dtype, as a split over K does."""
    start = call.args[0] if call.name in ("addmm", "baddbmm") else None
    left, right = call.args[-2:]
    total = None
    for x, w in zip(left.float().tensor_split(4, -1), right.float().tensor_split(4, -2)):
        partial = (x @ w).to(left.dtype)
        total = partial if total is None else total + partial
    return total if start is None else total + start


def last_term_dropped(call: Call) -> Any:
    *start, left, right = call.args
    return call.again(*start, left[..., :-1], right[..., :-1, :])


def last_rows_dropped(call: Call) -> Any:
    out = call.out.clone()
    if out.shape[-2] > 1:
        out[..., -1, :] = 0
    return out


def flipped(bit: int) -> Callable[[Call], Any]:
    """One bit of one element of the result is flipped."""

    def alter(call: Call) -> Any:
        import torch

        out = call.out.clone()
        whole = torch.int32 if out.dtype == torch.float32 else torch.int16
        element = out.view(-1)[out.numel() // 2 :][:1]
        element.copy_((element.view(whole) ^ (1 << bit)).view(out.dtype))
        return out

    return alter


def wrong_factor(call: Call) -> Any:
    return call.out * (1 + 2.0**-6)


def strides_ignored(call: Call) -> Any:
    """A transposed right side is read as if it lay in order."""
    *start, left, right = call.args
    if right.stride(-1) != 1:
        right = right.transpose(-1, -2).reshape(right.shape)
    return call.again(*start, left, right)


OUTPUT_BIT = "smaller than the rounding of the output; repeating finds it"
PROBE = "matmul"
FAULTS = (
    Fault("inputs cut to TF32", PROBE, altered(PRODUCTS, cut_to_tf32, "float32"), dtype="float32", quick=True),
    Fault("partial sums in bfloat16", PROBE, altered(PRODUCTS, partial_sums_in_narrow, "bfloat16"), dtype="bfloat16"),
    Fault("last of the K terms dropped", PROBE, altered(PRODUCTS, last_term_dropped)),
    Fault("last row not written", PROBE, altered(PRODUCTS, last_rows_dropped)),
    Fault("strides of the right side ignored", PROBE, altered(PRODUCTS, strides_ignored)),
    Fault("scaled by 65/64", PROBE, altered(PRODUCTS, wrong_factor)),
    *(
        Fault(
            f"bit {bit} of one element flipped", PROBE, altered(PRODUCTS, flipped(bit), dtype), {}, expect, dtype, below
        )
        for dtype, bit, expect, below in (
            ("float32", 0, MISSED, OUTPUT_BIT),
            ("float32", 3, MISSED, OUTPUT_BIT),
            ("float32", 14, "caught", ""),
            ("bfloat16", 0, WATCHED, ""),
            ("bfloat16", 3, "caught", ""),
            ("bfloat16", 13, "caught", ""),
        )
    ),
)
