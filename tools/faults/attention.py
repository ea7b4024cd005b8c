"""Faults of attention kernels: masks, scale, tiles, strides, precision.

The math kernel stays right, as the way round that a user has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tools.faults._plant import MISSED, WATCHED, Fault, Plant, replaced

QUICK = {"groups": ["padded_right"]}
EVERY = {"groups": ["padded_right", "padded_left", "transposed_inputs"]}


def attention(change: Callable[..., Any], dtype: str = "") -> Plant:
    """``change(original, q, k, v, mask)`` in place of every kernel but math."""

    def plant() -> AbstractContextManager[None]:
        import torch
        import torch.nn.functional as F

        def make(original: Any) -> Any:
            def candidate(q: Any, k: Any, v: Any, attn_mask: Any = None, **options: Any) -> Any:
                by_math = not torch.backends.cuda.flash_sdp_enabled()
                exact = q.dtype == torch.float64
                if by_math or exact or attn_mask is None or (dtype and q.dtype != getattr(torch, dtype)):
                    return original(q, k, v, attn_mask=attn_mask, **options)
                return change(original, q, k, v, attn_mask)

            return candidate

        return replaced(F, "scaled_dot_product_attention", make)

    return plant


def eager(q: Any, k: Any, v: Any, mask: Any, narrow_logits: bool = False, narrow_softmax: bool = False) -> Any:
    """Attention step by step in the dtype of q, statistics in float32 unless told otherwise."""
    import torch

    scores = q.float() @ k.float().transpose(-1, -2) / math.sqrt(q.shape[-1])
    if narrow_logits or narrow_softmax:
        scores = scores.to(q.dtype)
    scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    if narrow_softmax:
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        return (weights / _narrow_sum(weights)) @ v
    return torch.softmax(scores.float(), -1).to(q.dtype) @ v


def _narrow_sum(weights: Any) -> Any:
    total = weights[..., :1]
    for column in range(1, weights.shape[-1]):
        total = total + weights[..., column : column + 1]
    return total


def additive(mask: Any, like: Any) -> Any:
    import torch

    if mask.dtype != torch.bool:
        return mask.clone()
    return torch.zeros(mask.shape, dtype=like.dtype).masked_fill(~mask, torch.finfo(like.dtype).min)


def nan_in_dq(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    if q.requires_grad and q.shape[-2] % 128 == 64:
        q.register_hook(lambda gradient: gradient.index_fill(-2, gradient.new_tensor([5]).long(), math.nan))
    return original(q, k, v, attn_mask=mask)


def nan_on_padding(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    import torch

    out = original(q, k, v, attn_mask=mask)
    broken = torch.zeros_like(out)
    broken[1, :, -1] = math.nan
    return out + broken


def future_key(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    mask = mask.clone()
    mask[..., 3, 4] = 0.0 if mask.is_floating_point() else True
    return original(q, k, v, attn_mask=mask)


def last_key_lost(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    mask = additive(mask, q)
    mask[0, ..., -1, -1] = -math.inf
    return original(q, k, v, attn_mask=mask)


def half_tile_scored_zero(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    mask, tail = additive(mask, q), q.shape[-2] % 128
    if tail:
        mask[..., -1:, -tail // 2 :] = 0.0
        mask[1, ..., -tail // 2 :] = 0.0
    return original(q, k, v, attn_mask=mask)


def wrong_scale(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return original(q, k, v, attn_mask=mask, scale=1 / math.sqrt(q.shape[-1] * 65 / 64))


def strides_ignored(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    if not k.is_contiguous():
        k = k.transpose(1, 2).reshape(k.shape)
    return original(q, k, v, attn_mask=mask)


def dropout_left_on(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return original(q, k, v, attn_mask=mask, dropout_p=0.01)


def rows_dropped(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    import torch

    out = original(q, k, v, attn_mask=mask)
    kept = torch.ones_like(out)
    kept[..., out.shape[-2] // 64 * 64 :, :] = 0.0
    return out * kept if out.shape[-2] > 64 else out


def gradient_lost(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return original(q, k.detach() + 0.0 * k, v, attn_mask=mask)


def second_sequence_unmasked(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return original(q, k, v, attn_mask=mask[:1].expand(mask.shape))


def softmax_in_narrow(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return eager(q, k, v, mask, narrow_softmax=True)


def logits_in_narrow(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return eager(q, k, v, mask, narrow_logits=True)


PROBE = "attention_masked"
FAULTS = (
    Fault("NaN in one row of the query's gradient at L mod 128 = 64", PROBE, attention(nan_in_dq), EVERY),
    Fault("NaN on the last row of a padded sequence", PROBE, attention(nan_on_padding), QUICK, quick=True),
    Fault("one future key seen", PROBE, attention(future_key), QUICK),
    Fault("the last key not seen", PROBE, attention(last_key_lost), QUICK),
    Fault("half a tile scored 0 instead of minus infinity", PROBE, attention(half_tile_scored_zero), QUICK),
    Fault("padding of the second sequence ignored", PROBE, attention(second_sequence_unmasked), QUICK),
    Fault("scale of 65 for 64", PROBE, attention(wrong_scale, "float32"), QUICK, dtype="float32"),
    Fault("scale of 65 for 64", PROBE, attention(wrong_scale, "bfloat16"), QUICK, WATCHED, "bfloat16"),
    Fault("strides ignored", PROBE, attention(strides_ignored), EVERY),
    Fault("dropout of 1 % left on", PROBE, attention(dropout_left_on), QUICK),
    Fault("rows after the last full tile dropped", PROBE, attention(rows_dropped), QUICK),
    Fault("gradient of the keys lost", PROBE, attention(gradient_lost), QUICK),
    Fault("softmax summed in bfloat16", PROBE, attention(softmax_in_narrow, "bfloat16"), QUICK, dtype="bfloat16"),
    Fault(
        "logits rounded to bfloat16 before the softmax",
        PROBE,
        attention(logits_in_narrow, "bfloat16"),
        QUICK,
        MISSED,
        "bfloat16",
        "eager attention rounds there too",
    ),
)
