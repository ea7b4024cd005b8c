"""The flash-attn package, forward and backward.

`flash_attn_func` and, for several sequences in one row, `flash_attn_varlen_func` are tested: dense and causal, with
head_dim 64, 128 and 256, grouped heads, 33728 keys, and causal masks of unequal lengths. flash-attn aligns such masks
at the last key from 2.1 on, and at the first key before (its README, "2.1: Change behavior of causal flag"). The
results are compared with float64 on the CPU by the budgets of `_attention.py`. Plain attention in float32 is the
control.

A failure means that an output or gradient is further from the exact value than 4 times its rounding budget, or not
finite. Known: NaN in the gradient of q before 2.0.4 (Dao-AILab/flash-attention#334).
Rows beyond the last sequence (a padded buffer) may get gradients that no kernel wrote
(Dao-AILab/flash-attention#2324). The memory is therefore filled with NaN before, and the values found there are
recorded. They are judged only if the request sets rows_beyond.

Request: seed, device, dtype (only float16 and bfloat16), rows_beyond, cases (selects some cases by name).
"""

from __future__ import annotations

from typing import Dict

from compatcheck.probes._criterion import Measuring, Request, Stage, Tensor
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._attention_package import Case, cases, rows
from compatcheck.probes.operators._attention_package import judge as judge
from compatcheck.probes.operators._operator import dtypes_of

NEEDS: Dict[str, str] = {"torch": ">=1.13", "flash_attn": ">=2.0"}
TIMEOUT: float = 90.0
PROFILE: str = "quick"
SECONDS: float = 3.0

LOWER_RIGHT_SINCE = (2, 1)


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of each case and dtype."""
    import flash_attn

    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    version = tuple(int(part) for part in flash_attn.__version__.split(".")[:2])
    chosen = list(cases(version < LOWER_RIGHT_SINCE))
    for dtype in dtypes_of(request, device):
        if dtype != "float32":
            yield from rows(request, chosen, dtype, device, {"flash-attn": _kernel}, stage)
    return {"device": device}


def _kernel(case: Case, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    import flash_attn
    import torch

    if not case.sequences:
        return flash_attn.flash_attn_func(q, k, v, causal=case.causal)
    starts = torch.tensor((0, *case.sequences), device=q.device).cumsum(0).to(torch.int32)
    longest = max(case.sequences)
    out = flash_attn.flash_attn_varlen_func(q[0], k[0], v[0], starts, starts, longest, longest, causal=case.causal)
    return out[None]
