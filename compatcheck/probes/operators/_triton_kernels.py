"""Triton kernels of `triton_kernel.py`; a file of their own, as Triton reads their source and their globals.

Annotations stay objects here, which the oldest Triton needs.
"""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def normalise(x, w, y, columns, epsilon, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """RMS norm of one row a program."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, axis=0) / columns + epsilon)
    weights = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * columns + at, (values * scale * weights).to(y.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def multiply(a, b, c, inner, N: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The N x N product of an N x inner and an inner x N matrix, by one program."""
    rows, columns, steps = tl.arange(0, N), tl.arange(0, N), tl.arange(0, BLOCK)
    total = tl.zeros((N, N), dtype=tl.float32)
    for start in range(0, inner, BLOCK):
        left = tl.load(a + rows[:, None] * inner + (start + steps)[None, :])
        right = tl.load(b + (start + steps)[:, None] * N + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty))
