"""Faults of gradients that are sums over repeated tokens."""

from __future__ import annotations

from typing import Any

from tools.faults._plant import CAUGHT, Call, Fault, altered


def last_place_wins(call: Call) -> Any:
    """Where a token stands several times, only its last place counts."""
    import torch

    g, tokens, rows = call.args[:3]
    out = torch.zeros_like(call.out)
    out[tokens.reshape(-1)] = g.reshape(-1, g.shape[-1])
    return out


def one_place_lost(call: Call) -> Any:
    out = call.out.clone()
    g, tokens = call.args[:2]
    out[tokens.reshape(-1)[0]] -= g.reshape(-1, g.shape[-1])[0]
    return out


def summed_in_bfloat16(call: Call) -> Any:
    g, *rest = call.args
    return call.again(g.bfloat16(), *rest).to(g.dtype)


BACKWARD = ("embedding_dense_backward",)
PROBE, NARROW = "embedding_backward", {"usage": "parameters_in_16_bits"}
FAULTS = (
    Fault("only the last place of a token counts", PROBE, altered(BACKWARD, last_place_wins), quick=True),
    Fault("one place of a token lost", PROBE, altered(BACKWARD, one_place_lost)),
    Fault(
        "float32 gradients summed in bfloat16", PROBE, altered(BACKWARD, summed_in_bfloat16, "float32"), dtype="float32"
    ),
    Fault("torch's own sums in bfloat16", PROBE, None, NARROW, CAUGHT, "bfloat16"),
)
