"""Faults of whole models: what padding, packing, checkpointing and the loss do to each other.

The model is Llama; one of its attentions stays right, as the way round that a user has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tools.faults._plant import Fault, Plant, replaced
from tools.faults.attention import additive, attention, dropout_left_on, nan_on_padding, second_sequence_unmasked
from tools.faults.losses import averaged_over_ignored, function
from tools.faults.optimizers import last_parameter_left_out, step

LLAMA = "transformers.models.llama.modeling_llama"
NEEDS = ("transformers",)
TWO = {"batch_sizes": [1, 2]}
PACKED = {"training": {"packing": True}}


def method(module: str, name: str, change: Callable[..., Any]) -> Plant:
    """``change(original, *args, **options)`` in the place of a function or method of a module."""

    def plant() -> AbstractContextManager[None]:
        import importlib

        owner: Any = importlib.import_module(module)
        *path, last = name.split(".")
        for part in path:
            owner = getattr(owner, part)

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def candidate(*args: Any, **options: Any) -> Any:
                return change(original, *args, **options)

            return candidate

        return replaced(owner, last, make)

    return plant


def padding_ignored(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return original(q, k, v, is_causal=True)


def keyless_rows_averaged(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """A mask of finfo.min, as older transformers make it: the fused CPU kernel errs backward on rows without a key."""
    return original(q, k, v, attn_mask=additive(mask, q))


def padding_seen_by_eager(
    original: Any, module: Any, query: Any, key: Any, value: Any, mask: Any, *args: Any, **options: Any
) -> Any:
    import torch

    if mask is not None and query.dtype != torch.float64 and query.shape[0] > 1:
        mask = mask.clone()
        mask[..., 5:, 0] = 0
    return original(module, query, key, value, mask, *args, **options)


def without_gradient(original: Any, layer: Any, hidden: Any) -> Any:
    return original(layer, hidden).detach()


def angles_in_bfloat16(original: Any, module: Any, x: Any, position_ids: Any) -> Any:
    import torch

    if x.dtype != torch.bfloat16:
        return original(module, x, position_ids)
    angles = position_ids[..., None].bfloat16() * module.inv_freq.to(x.device).bfloat16()
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def angles_in_bfloat16_under_autocast(original: Any, module: Any, x: Any, position_ids: Any) -> Any:
    import torch

    under = torch.is_autocast_enabled("cpu")
    return angles_in_bfloat16(original, module, x, position_ids) if under else original(module, x, position_ids)


def another_base(original: Any, module: Any, *args: Any, **options: Any) -> Any:
    original(module, *args, **options)
    module.inv_freq = module.inv_freq**1.01


def one_sequence(original: Any, position_ids: Any) -> None:
    return None


def boundaries_one_late(original: Any, position_ids: Any) -> Any:
    """The first token of a sequence counts as the last of the one before."""
    found = original(position_ids)
    return None if found is None else found.roll(1, -1).index_fill(-1, found.new_tensor([0]), 0)


def padding_side_taken_for_right(original: Any, model: Any, *args: Any, **options: Any) -> Any:
    """The lengths of the sequences are right and where they stand is not, as in kernels that unpad from the right."""
    mask = options.get("attention_mask")
    if mask is not None and mask.dim() == 2 and model.embed_tokens.weight.element_size() < 8:
        options["attention_mask"] = mask.sort(-1, descending=True).values
    return original(model, *args, **options)


def last_padding_seen(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """The place before the first token of a sequence that is padded on the left is attended to."""
    mask = mask.clone()
    for row in mask:
        seen = row[0, -1] if row.dtype == mask.new_ones(1).bool().dtype else row[0, -1] == 0
        first = int(seen.long().argmax())
        if first:
            row[:, first:, first - 1] = True if mask.dtype == seen.dtype else 0.0
    return original(q, k, v, attn_mask=mask)


def norm_without_gradient(original: Any, norm: Any, hidden: Any) -> Any:
    if norm.weight.element_size() > 2:
        return original(norm, hidden)
    weight = norm.weight
    unscaled = hidden.float() * (hidden.float().pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).rsqrt()
    return weight.detach() * unscaled.to(hidden.dtype) + 0.0 * weight


def loss_in_bfloat16(original: Any, logits: Any, labels: Any, **options: Any) -> Any:
    import torch

    if logits.dtype == torch.float64:
        return original(logits, labels, **options)
    return original(logits.bfloat16(), labels, **options).float()


def gradient_across_sequences(original: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Right forward; backward the keys of a row get the gradient of causal attention without boundaries."""
    out, other = original(q, k, v, attn_mask=mask), original(q.detach(), k, v.detach(), is_causal=True)
    own = original(q.detach(), k, v.detach(), attn_mask=mask)
    return out + (other - other.detach()) - (own - own.detach())


def switch_ignored(original: Any, model: Any, *args: Any, **options: Any) -> None:
    return None


def block_detached(original: Any, work: Any, *args: Any, **options: Any) -> Any:
    """The block's inputs lose their graph, as re-entrant checkpointing of frozen embeddings does."""
    first, *rest = args
    return original(work, first.detach().requires_grad_(), *rest, **options)


@contextmanager
def no_step() -> Iterator[None]:
    import torch

    with replaced(torch.optim.AdamW, "step", lambda original: lambda self, closure=None: None):
        yield


@contextmanager
def ascent() -> Iterator[None]:
    import torch

    def make(original: Any) -> Any:
        def candidate(self: Any, *args: Any, **options: Any) -> Any:
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None and parameter.dtype != torch.float32:
                        parameter.grad.neg_()
            return original(self, *args, **options)

        return candidate

    with replaced(torch.optim.AdamW, "step", make):
        yield


MICRO, PACKING, SAVED = "micro_training", "packed_sequences", "gradient_checkpointing"
ENABLE = "PreTrainedModel.gradient_checkpointing_enable"
FAULTS = (
    Fault("NaN on the last row of a padded sequence", MICRO, attention(nan_on_padding), TWO, needs=NEEDS, quick=True),
    Fault("padding ignored by sdpa", MICRO, attention(padding_ignored), TWO, needs=NEEDS),
    Fault("padding of the second sequence ignored", MICRO, attention(second_sequence_unmasked), TWO, needs=NEEDS),
    Fault(
        "rows without a key seen as full", MICRO, attention(keyless_rows_averaged), {"batch_sizes": [1]}, needs=NEEDS
    ),
    Fault(
        "padding seen by eager attention",
        MICRO,
        method(LLAMA, "eager_attention_forward", padding_seen_by_eager),
        TWO,
        needs=NEEDS,
    ),
    Fault("dropout of 1 % left on in attention", MICRO, attention(dropout_left_on), TWO, needs=NEEDS),
    Fault(
        "loss averaged over ignored tokens", MICRO, function("cross_entropy", averaged_over_ignored), TWO, needs=NEEDS
    ),
    Fault(
        "no gradient through the MLP, in any precision",
        MICRO,
        method(LLAMA, "LlamaMLP.forward", without_gradient),
        TWO,
        needs=NEEDS,
    ),
    Fault("rising along the gradient", MICRO, ascent, {"batch_sizes": [1]}, needs=NEEDS),
    Fault(
        "one parameter never updated",
        MICRO,
        step(last_parameter_left_out),
        {"batch_sizes": [1]},
        needs=NEEDS,
    ),
    Fault("no step at all", MICRO, no_step, {"batch_sizes": [1]}, needs=NEEDS),
    Fault(
        "angles in bfloat16",
        "rotary_embedding",
        method(LLAMA, "LlamaRotaryEmbedding.forward", angles_in_bfloat16),
        dtype="bfloat16",
        needs=NEEDS,
    ),
    Fault(
        "angles in bfloat16 under autocast",
        "rotary_embedding",
        method(LLAMA, "LlamaRotaryEmbedding.forward", angles_in_bfloat16_under_autocast),
        dtype="bfloat16",
        needs=NEEDS,
        quick=True,
    ),
    Fault(
        "frequencies of another base",
        "rotary_embedding",
        method(LLAMA, "LlamaRotaryEmbedding.__init__", another_base),
        needs=NEEDS,
    ),
    Fault(
        "attention across packed sequences",
        PACKING,
        method("transformers.masking_utils", "find_packed_sequence_indices", one_sequence),
        PACKED,
        needs=NEEDS,
        quick=True,
    ),
    Fault("padding ignored by sdpa", PACKING, attention(padding_ignored), needs=NEEDS),
    Fault(
        "boundaries of packed sequences one token late",
        PACKING,
        method("transformers.masking_utils", "find_packed_sequence_indices", boundaries_one_late),
        PACKED,
        needs=NEEDS,
    ),
    Fault("gradient across packed sequences", PACKING, attention(gradient_across_sequences), PACKED, needs=NEEDS),
    Fault("last place of left padding seen", PACKING, attention(last_padding_seen), needs=NEEDS),
    Fault(
        "left padding masked on the right",
        MICRO,
        method(LLAMA, "LlamaModel.forward", padding_side_taken_for_right),
        TWO,
        needs=NEEDS,
    ),
    Fault("last place of left padding seen", MICRO, attention(last_padding_seen), TWO, needs=NEEDS),
    Fault(
        "no gradient for the weights of norms in 16 bits",
        MICRO,
        method(LLAMA, "LlamaRMSNorm.forward", norm_without_gradient),
        TWO,
        needs=NEEDS,
    ),
    Fault("loss computed in bfloat16", MICRO, function("cross_entropy", loss_in_bfloat16), TWO, needs=NEEDS),
    Fault(
        "switch accepted and ignored", SAVED, method("transformers", ENABLE, switch_ignored), needs=NEEDS, quick=True
    ),
    Fault(
        "inputs of checkpointed blocks lose their graph",
        SAVED,
        method("transformers.modeling_utils", "checkpoint", block_detached),
        needs=NEEDS,
    ),
)
