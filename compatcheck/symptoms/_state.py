"""What one reading says of the health of a run, and what a stretch of such readings says."""

from __future__ import annotations

import math
from typing import Literal

from compatcheck.symptoms._reading import Reading

State = Literal[
    "healthy",
    "loss-not-finite",
    "zero-without-gradient",
    "zero-with-nan-gradient",
    "zero-with-gradient",
    "zero-alone",
    "gradient-not-finite",
    "gradient-zero",
]

_MOST_GROUPS = 64


def state_of(reading: Reading) -> State | None:
    """The state of a training reading; None for one that measures no training step."""
    loss, gradient = reading.loss, reading.grad_norm
    if loss is None and gradient is None:
        return None
    if loss is not None and not math.isfinite(loss):
        return "loss-not-finite"
    if gradient is not None and not math.isfinite(gradient):
        return "zero-with-nan-gradient" if loss == 0 else "gradient-not-finite"
    if loss == 0 and not reading.zero_is_normal:
        if gradient is None:
            return "zero-alone"
        return "zero-without-gradient" if gradient == 0 else "zero-with-gradient"
    return "gradient-zero" if gradient == 0 and not reading.zero_is_normal else "healthy"


def groups_behind(gradient: float) -> int | None:
    """The number n of which a gradient norm is the square root, as printed; None where there is none.

    DeepSpeed's ZeRO-1/2 puts -1 in place of a norm that is not finite, for each parameter group, and takes the root
    of the sum of squares. https://github.com/deepspeedai/DeepSpeed/pull/7171
    """
    if not math.isfinite(gradient) or gradient < 0.999:
        return None
    count = round(gradient * gradient)
    return count if count <= _MOST_GROUPS and abs(gradient - math.sqrt(count)) < 5e-4 * gradient else None
