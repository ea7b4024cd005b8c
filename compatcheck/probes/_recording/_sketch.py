"""Numbers that stand for a tensor: its norm, and its products with a few fixed vectors of signs.

The root mean square of the differences of two sketches estimates the 2-norm of the difference of the two tensors
(Johnson and Lindenstrauss), so that records of two processes are compared without their tensors. Signs and weights
are made from counters by integer arithmetic alone: no release of torch can draw them differently.
"""

from __future__ import annotations

import zlib
from typing import Dict, Sequence, Tuple

from compatcheck.probes._criterion import Row, Tensor

WIDTH = 8
_SEED = 0x5EED
_FIRST, _SECOND = 0x9E3779B1, 0x85EBCA77
_MASK = 0xFFFFFFFF

_signs: Dict[int, Tensor] = {}
_drawn: Dict[Tuple[str, int, Tuple[int, ...]], Tensor] = {}


def counters(count: int, stream: int) -> Tensor:
    """``count`` pseudo-random integers below 2**32, as int64, from their position and the stream's number alone."""
    import torch

    value = (torch.arange(count, dtype=torch.int64) + 1) * 0x9E3779B1
    value = (value + (stream & _MASK) * 0x85EBCA77) & _MASK
    for factor in (_SECOND, 0xC2B2AE3D):
        value = value ^ (value >> 15)
        value = ((value & 0xFFFF) * factor + ((((value >> 16) * factor) & 0xFFFF) << 16)) & _MASK
    return value ^ (value >> 16)


def drawn(shape: Sequence[int], name: str, seed: int) -> Tensor:
    """Float64 values of mean 0 and variance 1 for a name, each the sum of two uniform ones; not to be changed."""

    key = (name, seed, tuple(shape))
    if key not in _drawn:
        count = 1
        for size in shape:
            count *= size
        whole = counters(count, zlib.crc32(f"{seed} {name}".encode()))
        total = ((whole & 0xFFFF) + (whole >> 16)).double() / 2.0**16 - 1.0
        _drawn[key] = (total * 6.0**0.5).reshape(tuple(shape))
    return _drawn[key]


def sketch(tensor: Tensor) -> Row:
    """``norm``, ``size``, ``sketch`` and the number of elements that are not finite, which count as 0 in the rest."""
    import torch

    flat = tensor.detach().to("cpu", torch.float64).reshape(-1)
    finite = torch.isfinite(flat)
    lost = int((~finite).sum())
    if lost:
        flat = torch.where(finite, flat, torch.zeros_like(flat))
    products = (_signs_for(len(flat)) @ flat).tolist() if len(flat) else [0.0] * WIDTH
    row: Row = {"norm": float(flat.norm()), "size": len(flat), "sketch": products}
    return {**row, "nonfinite": lost} if lost else row


def number(value: float) -> Row:
    """A single number as a sketch."""
    import math

    if not math.isfinite(value):
        return {"norm": 0.0, "size": 1, "sketch": [0.0], "nonfinite": 1}
    return {"norm": abs(value), "size": 1, "sketch": [value]}


def _signs_for(count: int) -> Tensor:
    import torch

    if count not in _signs:
        rows = [1.0 - 2.0 * ((counters(count, _SEED + row) >> 13) & 1).double() for row in range(WIDTH)]
        _signs[count] = torch.stack(rows)
    return _signs[count]
