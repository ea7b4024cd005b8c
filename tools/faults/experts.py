"""Faults of mixture-of-experts models: routing, renormalisation, auxiliary loss, and the sums of experts' outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from compatcheck.probes.training.moe_routing import FAMILIES
from tools.faults._plant import Fault, Plant
from tools.faults.models import method

PROBE, NEEDS = "moe_routing", ("transformers",)
MIXTRAL, QWEN2, QWEN3 = ({"config": family} for family in FAMILIES)
LOSS = "load_balancing_loss_func"


def softmax_twice(original: Any, gate_logits: Any, *args: Any, **options: Any) -> Any:
    """As transformers 5.0 to 5.5: the routers hand probabilities on, and the loss takes their softmax."""
    return original(tuple(layer.softmax(-1) for layer in gate_logits), *args, **options)


def padding_counted(original: Any, gate_logits: Any, experts: Any, top_k: Any, mask: Any = None) -> Any:
    return original(gate_logits, experts, top_k, None)


def one_expert_too_many(original: Any, gate_logits: Any, experts: Any, top_k: Any, mask: Any = None) -> Any:
    return original(gate_logits, experts, top_k + 1, mask)


def last_layer_left_out(original: Any, gate_logits: Any, *args: Any, **options: Any) -> Any:
    return original(gate_logits[:-1], *args, **options)


def auxiliary_detached(original: Any, *args: Any, **options: Any) -> Any:
    return original(*args, **options).detach()


def one_percent_more(original: Any, *args: Any, **options: Any) -> Any:
    return original(*args, **options) * 1.01


def not_renormalised(original: Any, self: Any, hidden: Any) -> Any:
    logits, weights, served = original(self, hidden)
    shares = logits.float().softmax(-1).gather(-1, served)
    return logits, shares.to(weights.dtype), served


def renormalised_anyway(original: Any, self: Any, hidden: Any) -> Any:
    logits, weights, served = original(self, hidden)
    return logits, weights / weights.sum(-1, keepdim=True), served


def weights_detached(original: Any, self: Any, hidden: Any) -> Any:
    logits, weights, served = original(self, hidden)
    return logits, weights.detach(), served


def weights_exchanged(original: Any, self: Any, hidden: Any) -> Any:
    logits, weights, served = original(self, hidden)
    return logits, weights.flip(-1), served


def weights_in_bfloat16(original: Any, self: Any, hidden: Any) -> Any:
    logits, weights, served = original(self, hidden)
    return logits, weights.bfloat16().to(weights.dtype), served


def last_row_left_out(original: Any, self: Any, hidden: Any, *args: Any, **options: Any) -> Any:
    out = original(self, hidden, *args, **options)
    return out * (out.new_ones(len(out), 1).index_fill(0, out.new_tensor([len(out) - 1]).long(), 0.0))


def shared_expert_ungated(original: Any, self: Any, hidden: Any) -> Any:
    flat = hidden.view(-1, hidden.shape[-1])
    shared = self.shared_expert(flat) * (1 - self.shared_expert_gate(flat).sigmoid())
    return original(self, hidden) + shared.reshape(hidden.shape)


def last_token_unserved(original: Any, experts: Any, hidden: Any, *args: Any, **options: Any) -> Any:
    out = original(experts, hidden, *args, **options)
    return out.index_fill(0, out.new_tensor([len(out) - 1]).long(), 0.0)


def noise_on_the_input(original: Any, self: Any, hidden: Any) -> Any:
    """Jitter of 1 % that the config does not ask for."""
    import torch

    noise = torch.empty_like(hidden).uniform_(0.99, 1.01) if hidden.element_size() < 8 else 1.0
    return original(self, hidden * noise)


def one_expert_overfull(original: Any, self: Any, hidden: Any) -> Any:
    """An expert that serves its capacity turns the tokens after it away, though no capacity is asked for."""
    logits, weights, served = original(self, hidden)
    full = (served == 0).flatten().cumsum(0).view(served.shape) > len(served) // 4
    return logits, weights.masked_fill(full & (served == 0), 0.0), served


def counted_in_each_layer(original: Any, gate_logits: Any, *args: Any, **options: Any) -> Any:
    """The loss of each layer by itself, summed: as large as there are layers."""
    return sum(original((layer,), *args, **options) for layer in gate_logits)


def planted(name: str, family: dict[str, Any], where: str, change: Callable[..., Any], quick: bool = False) -> Fault:
    """``change`` in the place of a function or method of the family's module."""
    kind = family["config"]["model_type"]
    module = f"transformers.models.{kind}.modeling_{kind}"
    return Fault(name, PROBE, method(module, where, change), family, needs=NEEDS, quick=quick)


def grouped_products(change: Callable[..., Any]) -> Plant:
    """``change`` in the place of the implementation of experts that the name grouped_mm stands for."""

    @contextmanager
    def plant() -> Iterator[None]:
        from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

        known = ALL_EXPERTS_FUNCTIONS._global_mapping
        original = known["grouped_mm"]
        known["grouped_mm"] = lambda *args, **options: change(original, *args, **options)
        try:
            yield
        finally:
            known["grouped_mm"] = original

    return plant


FAULTS = (
    planted("softmax taken twice in the auxiliary loss", MIXTRAL, LOSS, softmax_twice, quick=True),
    planted("padding counted in the auxiliary loss", MIXTRAL, LOSS, padding_counted),
    planted("one expert too many counted in the auxiliary loss", QWEN2, LOSS, one_expert_too_many),
    planted("last layer left out of the auxiliary loss", QWEN3, LOSS, last_layer_left_out),
    planted("auxiliary loss without gradient", QWEN3, LOSS, auxiliary_detached),
    planted("auxiliary loss 1 % too large", MIXTRAL, LOSS, one_percent_more),
    planted("weights of experts not renormalised", MIXTRAL, "MixtralTopKRouter.forward", not_renormalised),
    planted("weights renormalised against the config", QWEN2, "Qwen2MoeTopKRouter.forward", renormalised_anyway),
    planted("no gradient through the weights of experts", MIXTRAL, "MixtralTopKRouter.forward", weights_detached),
    planted("weights of the two experts exchanged", QWEN3, "Qwen3MoeTopKRouter.forward", weights_exchanged),
    planted("weights of experts rounded to bfloat16", QWEN3, "Qwen3MoeTopKRouter.forward", weights_in_bfloat16),
    planted("last token served by no expert", MIXTRAL, "MixtralExperts.forward", last_row_left_out),
    planted("tokens beyond a capacity dropped", MIXTRAL, "MixtralTopKRouter.forward", one_expert_overfull),
    planted("jitter that is not asked for", MIXTRAL, "MixtralTopKRouter.forward", noise_on_the_input),
    planted("auxiliary loss summed over layers", QWEN3, LOSS, counted_in_each_layer),
    Fault(
        "grouped products leave out the last token",
        PROBE,
        grouped_products(last_token_unserved),
        MIXTRAL,
        needs=NEEDS,
    ),
    planted("shared expert without its gate", QWEN2, "Qwen2MoeSparseMoeBlock.forward", shared_expert_ungated),
)
