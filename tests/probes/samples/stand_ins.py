"""Stand-ins for packages that need CUDA: their interface over plain attention, to try the logic of their probes.

They say nothing about the real packages.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

Attend = Callable[[Any, Any, Any, Any], Any]


def attend(q: Any, k: Any, v: Any, allowed: Any) -> Any:
    """Attention over (batch, length, heads, head_dim) in float32, rounded once; rows without a key give 0."""
    import torch

    k, v = (value.repeat_interleave(q.shape[2] // k.shape[2], 2) for value in (k, v))
    q, k, v, dtype = (*(value.float().transpose(1, 2) for value in (q, k, v)), q.dtype)
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~allowed, torch.finfo(torch.float32).min)
    weights = torch.softmax(scores, -1) * allowed.any(-1, keepdim=True)
    return (weights @ v).transpose(1, 2).to(dtype)


def allowed(queries: int, keys: int, causal: bool, lower_right: bool) -> Any:
    import torch

    everything = torch.ones(queries, keys, dtype=torch.bool)
    return everything.tril(keys - queries if lower_right else 0) if causal else everything


def flash_attn(version: str = "2.8.3", attend: Attend = attend, lower_right: bool = True) -> types.ModuleType:
    import torch

    def dense(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        return attend(q, k, v, allowed(q.shape[1], k.shape[1], causal, lower_right))

    def varlen(q: Any, k: Any, v: Any, starts: Any, _: Any, longest: int, __: int, causal: bool = False) -> Any:
        pieces = [
            dense(q[None, a:b], k[None, a:b], v[None, a:b], causal)[0]
            for a, b in zip(starts.tolist(), starts.tolist()[1:], strict=False)
        ]
        return torch.cat([*pieces, torch.zeros_like(q[starts[-1] :])])

    return _module("flash_attn", version, flash_attn_func=dense, flash_attn_varlen_func=varlen)


def xformers(version: str = "0.0.35", attend: Attend = attend) -> dict[str, types.ModuleType]:
    """xformers and its ops, by module name."""
    import torch

    class LowerTriangularMask:
        def allowed(self, queries: int, keys: int) -> Any:
            return allowed(queries, keys, True, False)

    class BlockDiagonalMask(LowerTriangularMask):
        def __init__(self, lengths: list[int]) -> None:
            self.lengths = lengths

        @classmethod
        def from_seqlens(cls, lengths: list[int]) -> Any:
            return cls(lengths)

        def make_causal(self) -> Any:
            return self

        def allowed(self, queries: int, keys: int) -> Any:
            return torch.block_diag(*(torch.ones(n, n) for n in self.lengths)).bool().tril()

    def memory_efficient_attention(q: Any, k: Any, v: Any, attn_bias: Any = None) -> Any:
        everything = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool)
        return attend(q, k, v, attn_bias.allowed(*everything.shape) if attn_bias else everything)

    fmha = types.SimpleNamespace(attn_bias=types.SimpleNamespace(BlockDiagonalMask=BlockDiagonalMask))
    ops = _module(
        "xformers.ops",
        version,
        memory_efficient_attention=memory_efficient_attention,
        LowerTriangularMask=LowerTriangularMask,
        fmha=fmha,
    )
    return {"xformers": _module("xformers", version, ops=ops), "xformers.ops": ops}


def _module(name: str, version: str, **members: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(members, __version__=version)
    return module
