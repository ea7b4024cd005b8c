"""The memory-efficient attention of xformers, forward and backward.

`xformers.ops.memory_efficient_attention` is tested with the kernel that it selects by default: dense and causal, with
head_dim 64, 128 and 256, 33728 keys, causal masks of unequal lengths (`LowerTriangularMask` aligns the first key with
the first query), and several sequences in one row (`BlockDiagonalCausalMask`). The results are compared with float64
on the CPU by the budgets of `_attention.py`. Plain attention in float32 is the control.

A failure means that an output or gradient is further from the exact value than 4 times its rounding budget, or not
finite. Known: NaN beyond 32768 keys in 0.0.18 (facebookresearch/xformers#719). A case for which this xformers has no
operator is recorded.

Request: seed, device, dtype, cases (selects some cases by name).
"""

from __future__ import annotations

from typing import Dict

from compatcheck.probes._criterion import Measuring, Request, Stage, Tensor
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._attention_package import Case, cases, rows
from compatcheck.probes.operators._attention_package import judge as judge
from compatcheck.probes.operators._operator import dtypes_of

NEEDS: Dict[str, str] = {"torch": ">=1.13", "xformers": ">=0.0.14"}
TIMEOUT: float = 90.0
PROFILE: str = "quick"
SECONDS: float = 3.0


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of each case and dtype."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    # Grouped heads need five dimensions there, and rows beyond the sequences are refused.
    chosen = [case for case in cases(upper_left=True) if case.heads == case.kv_heads and not case.beyond]
    for dtype in dtypes_of(request, device):
        yield from rows(request, chosen, dtype, device, {"xformers": _kernel}, stage)
    return {"device": device}


def _kernel(case: Case, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from xformers import ops

    bias = None
    if case.sequences:
        bias = ops.fmha.attn_bias.BlockDiagonalMask.from_seqlens(list(case.sequences)).make_causal()
    elif case.causal:
        bias = ops.LowerTriangularMask()
    return ops.memory_efficient_attention(q, k, v, attn_bias=bias)
