"""Routing and auxiliary loss of mixture-of-experts models, compared with the plain formula.

A small model with 8 experts, 2 for each token, is compared with itself in float64. It has the user's architecture,
else Mixtral, Qwen2-MoE and Qwen3-MoE. In the float64 reference, each block of experts is replaced by the formula of
the papers: probabilities from one softmax over the router's logits; the largest k, divided by their sum if the
architecture renormalises; and the sum of the experts' outputs in a plain loop. The auxiliary loss is that of Switch
Transformer, equations 4 to 6 (https://arxiv.org/abs/2101.03961), over all layers and all tokens that are not padding:
for each expert, the share of tokens that it serves times its mean probability, summed over the experts and multiplied
by their number. Compared are: logits, losses and gradients, with padding on either side and without padding; the
implementations of the experts (eager, grouped_mm, batched_mm) with a given routing; whether a gradient reaches the
router; and the weight of the auxiliary loss when micro-batches are accumulated.

Bound: for a loss, 64 u relative. For logits and gradients, the relative distance over all elements of a kind is at
most 64 u in float32 and 16 u in bfloat16, with u the unit roundoff, or 4 times the error of the plain formula in that
dtype. The plain formula in float32 is the control. A failure means that the experts are trained for a different model
than the one trained before, or that nothing balances their load.

If `output_router_logits` turns the auxiliary loss off, this is a fact and not a fault.

Request: seed, device, config, training (with gradient_accumulation_steps above 1, the accumulated loss is judged).
"""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Module, Request, Row, Stage, Tensor, Tensors
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._batches import on, padded, sequences
from compatcheck.probes.training._exact import float64_everywhere
from compatcheck.probes.training._logits import ROUNDINGS, attempted
from compatcheck.probes.training._model import Built, Unbuildable, build, exact_instance, instance
from compatcheck.probes.training._shrunk import EXPERT_COUNTS, EXPERTS_CHOSEN, text_config

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.36"}
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 8.0
ASKED_BY: Tuple[str, ...] = tuple("config." + name for name in EXPERT_COUNTS)

RENORMALISED = ("mixtral", "minimax", "qwen2_moe", "qwen3_moe", "olmoe", "qwen3_next")
"""Model types whose router is a softmax over all experts; the config of all but two decides the rest."""
ALWAYS = ("mixtral", "minimax")
COMMON: Row = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "moe_intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
FAMILIES: Tuple[Row, ...] = (
    {**COMMON, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2},
    {**COMMON, "model_type": "qwen2_moe", "num_experts": 8, "num_experts_per_tok": 2},
    {**COMMON, "model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True},
)
CHOSEN = 2
COEFFICIENT = 0.5
"""Of the auxiliary loss: so large that it shows in every gradient of a router."""
MICRO_BATCHES = 4
IMPLEMENTATIONS = ("eager", "grouped_mm", "batched_mm")
PLAIN = "plain formula"


class Moe(NamedTuple):
    """A model with few experts for each token: how many there are, whether their weights are renormalised."""

    built: Built
    name: str
    experts: int
    renormalised: bool
    device: str


class Pass(NamedTuple):
    """One forward and backward pass, float64 on the CPU: losses, and what is compared by kind."""

    losses: Dict[str, float]
    tensors: Tensors


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of each family: padding, implementations, accumulation."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    given = request.get("config")
    if given and not any(text_config(given).get(name) for name in EXPERT_COUNTS):
        return {"unsupported": "the model has no experts to route to"}
    facts: Row = {"device": device, "skipped": {}}
    for config in [given] if given else FAMILIES:
        kind = str(text_config(config).get("model_type"))
        stage(kind)
        if kind not in RENORMALISED:
            facts["skipped"][kind] = "this probe does not support the router of this model"
            continue
        try:
            moe = _moe({**request, "config": config}, device)
        except Unbuildable as reason:
            facts["skipped"][kind] = str(reason)
            continue
        facts["aux_loss_by_default"] = bool(getattr(moe.built.config, "output_router_logits", False))
        yield from _padded_rows(moe, int(request.get("seed", 0)), stage)
        stage("%s, implementations of experts" % kind)
        yield from _implementation_rows(moe, int(request.get("seed", 0)))
        stage("%s, accumulated" % kind)
        yield from _accumulated_rows(moe, request)
    if len(facts["skipped"]) == len([given] if given else FAMILIES):
        return {"unsupported": "; ".join("%s: %s" % item for item in sorted(facts["skipped"].items()))}
    return facts


def _moe(request: Request, device: str) -> Moe:
    """The small model, with more experts than serve a token, which the shrunk one has not."""
    built = build(request)
    config = copy.deepcopy(built.config)
    count = next(int(getattr(config, name)) for name in EXPERT_COUNTS if getattr(config, name, None))
    for name in EXPERTS_CHOSEN:
        if getattr(config, name, None):
            setattr(config, name, min(CHOSEN, count - 1))
    config.router_aux_loss_coef = COEFFICIENT
    kind = str(config.model_type)
    renormalised = kind in ALWAYS or bool(getattr(config, "norm_topk_prob", False))
    return Moe(built._replace(config=config), kind, count, renormalised, device)


def _padded_rows(moe: Moe, seed: int, stage: Stage) -> Iterator[Row]:
    chosen = sequences(moe.built.vocabulary, moe.built.special_ids, seed)
    shortest = [sequence[:32] for sequence in chosen if len(sequence) >= 32]
    batches = {
        "no padding": padded(shortest, "right", moe.built.pad_id),
        "padded right": padded(chosen, "right", moe.built.pad_id),
        "padded left": padded(chosen, "left", moe.built.pad_id),
    }
    for case, batch in batches.items():
        stage("%s, %s" % (moe.name, case))
        with float64_everywhere():
            exact = _plain_pass(exact_instance(moe.built), moe, batch, "cpu")
        plain = _plain_pass(instance(moe.built, "float32", "eager").to(moe.device), moe, batch, moe.device)
        row = {"case": "%s, %s" % (moe.name, case), "dtype": "float32"}
        yield {**row, "variant": PLAIN, "control": True, **_compared(plain, exact, plain)}
        yield attempted({**row, "variant": "transformers"}, functools.partial(_as_released, moe, batch, exact, plain))


def _as_released(moe: Moe, batch: Tensors, exact: Pass, plain: Pass) -> Row:
    return _compared(_pass(instance(moe.built, "float32", "eager").to(moe.device), batch, moe), exact, plain)


def _pass(model: Module, batch: Tensors, moe: Moe) -> Pass:
    """As the library computes it, with the auxiliary loss."""
    found = model(**on(batch, moe.device), output_router_logits=True)
    if found.aux_loss is None or not hasattr(found.aux_loss, "detach"):
        raise ValueError("output_router_logits=True gives no auxiliary loss")
    found.loss.backward()
    losses = {"auxiliary loss": float(found.aux_loss.detach()), "loss": float(found.loss.detach())}
    return Pass(losses, {"logits": _kept(found.logits, batch), **_gradients(model)})


def _plain_pass(model: Module, moe: Moe, batch: Tensors, device: str) -> Pass:
    """With every block of experts replaced by the formula."""
    seen: List[Tuple[Tensor, Tensor]] = []
    for block in blocks(model):
        block.forward = _formula(block, moe, seen)
    found = model(**on(batch, device))
    auxiliary = _auxiliary(seen, batch["attention_mask"].to(device), moe.experts)
    loss = found.loss + COEFFICIENT * auxiliary
    loss.backward()
    losses = {"auxiliary loss": float(auxiliary.detach()), "loss": float(loss.detach())}
    return Pass(losses, {"logits": _kept(found.logits, batch), **_gradients(model)})


def _auxiliary(seen: List[Tuple[Tensor, Tensor]], mask: Tensor, experts: int) -> Tensor:
    import torch

    probabilities = torch.cat([layer[mask.reshape(-1).bool()] for layer, _ in seen])
    served = torch.cat([layer[mask.reshape(-1).bool()] for _, layer in seen])
    counts = torch.nn.functional.one_hot(served, experts).sum(1).to(probabilities.dtype)
    return experts * (counts.mean(0) * probabilities.mean(0)).sum()


def blocks(model: Module) -> List[Module]:
    """The modules that route: those with a router and experts."""
    return [each for each in model.modules() if hasattr(each, "gate") and hasattr(each, "experts")]


def _formula(block: Module, moe: Moe, seen: List[Tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    """The block's forward by the formula, which notes probabilities and choice of each token."""
    import torch

    k = min(CHOSEN, moe.experts - 1)
    returns_logits = "router_logits" in inspect.getsource(type(block).forward).rpartition("return")[2]

    def forward(hidden: Tensor, *args: Any, **options: Any) -> Any:
        x = hidden.reshape(-1, hidden.shape[-1])
        logits = x @ block.gate.weight.t()
        probabilities = torch.softmax(logits.float(), -1)
        weights, served = probabilities.topk(k, -1)
        if moe.renormalised:
            weights = weights / weights.sum(-1, keepdim=True)
        seen.append((probabilities, served))
        out = torch.zeros_like(x)
        for number in range(moe.experts):
            share = (weights * (served == number)).sum(-1, keepdim=True).to(x.dtype)
            out = out + share * expert(block.experts, number, x)
        if hasattr(block, "shared_expert"):
            out = out + torch.sigmoid(block.shared_expert_gate(x)) * block.shared_expert(x)
        out = out.reshape(hidden.shape)
        return (out, logits) if returns_logits else out

    return forward


def expert(experts: Module, number: int, x: Tensor) -> Tensor:
    """The output of one expert, from parameters that are stacked or of modules of their own."""
    import torch

    silu = torch.nn.functional.silu
    if hasattr(experts, "gate_up_proj"):
        gate, up = (x @ experts.gate_up_proj[number].t()).chunk(2, -1)
        return (silu(gate) * up) @ experts.down_proj[number].t()
    own = experts[number]
    names = ("w1", "w3", "w2") if hasattr(own, "w1") else ("gate_proj", "up_proj", "down_proj")
    gate, up, down = (getattr(own, name).weight for name in names)
    return (silu(x @ gate.t()) * (x @ up.t())) @ down.t()


def _kept(logits: Tensor, batch: Tensors) -> Tensor:
    """The logits of tokens that are no padding."""
    return logits.detach().double().cpu()[batch["attention_mask"].bool()]


def _gradients(model: Module) -> Tensors:
    """By kind: of routers, experts and all the rest, each as one vector."""
    import torch

    kinds: Dict[str, List[Tensor]] = {}
    for name, parameter in sorted(model.named_parameters()):
        part = "routers" if ".gate.weight" in name else "experts" if ".experts." in name else "rest"
        kind = "gradient of the " + part
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        kinds.setdefault(kind, []).append(gradient.detach().double().cpu().flatten())
    return {kind: torch.cat(each) for kind, each in kinds.items()}


def _compared(found: Pass, exact: Pass, plain: Pass) -> Row:
    """The worst of all that was compared."""
    rows = []
    for name, value in exact.losses.items():
        share, usual = (abs(each.losses[name] - value) / abs(value) for each in (found, plain))
        says = "the %s is %.6g, but the formula gives %.6g" % (name, found.losses[name], value)
        rows.append(_scored(name, share, usual, "float32", says))
    for name, truth in exact.tensors.items():
        value = found.tensors[name]
        share, usual = (float((each.tensors[name] - truth).norm() / truth.norm()) for each in (found, plain))
        says = "the %s is off by %.2g of its size" % (name.replace("logits", "logits' error"), share)
        if name != "logits" and not bool(value.any()):
            says = "the %s is zero everywhere" % name
        rows.append(_scored(name, share, usual, "float32", says))
    return max(rows, key=lambda row: float(row["theta"]))


def _scored(name: str, share: float, usual: float, dtype: str, says: str) -> Row:
    theta = share / max(ROUNDINGS[dtype] * UNIT_ROUNDOFF[dtype], 4 * usual)
    finite = share == share and share != float("inf")
    row: Row = {"tensor": name, "theta": theta if finite else float("inf"), "rho": 0.0, "nonfinite": int(not finite)}
    return {**row, "says": says} if not theta <= 4 else row


def _implementation_rows(moe: Moe, seed: int) -> Iterator[Row]:
    """Experts alone, on a given routing, in each implementation that the model offers."""
    import torch

    generator = torch.Generator().manual_seed(seed + 7)
    hidden = int(moe.built.facts["hidden"])
    x = torch.randn(96, hidden, generator=generator, dtype=torch.float64)
    served = torch.stack([torch.randperm(moe.experts, generator=generator)[:CHOSEN] for _ in range(len(x))])
    served[:40, 0], served[:40, 1] = 0, 1  # experts that serve many tokens, and one that serves none
    served[served == moe.experts - 1] = 2
    served[served[:, 0] == served[:, 1], 1] = 3
    weights = torch.rand(len(x), CHOSEN, generator=generator, dtype=torch.float64) + 0.1
    if not hasattr(blocks(instance(moe.built, "float32", "eager"))[0].experts, "gate_up_proj"):
        return  # modules of their own, which have one implementation
    for dtype in ("float32", "bfloat16"):
        narrow = getattr(torch, dtype)
        row = {"case": "%s, experts" % moe.name, "dtype": dtype}
        rounded = (x.to(narrow), served, weights.to(narrow))
        experts = blocks(instance(moe.built, dtype, "eager"))[0].experts
        exact, plain = _experts_exactly(experts, *rounded), _experts_plainly(experts, *rounded)
        yield {**row, "variant": PLAIN, "control": True, **_experts_compared(plain, exact, plain, dtype)}
        for implementation in IMPLEMENTATIONS:
            found = _experts_of(moe, dtype, implementation)
            if found is None:
                continue
            measured = functools.partial(_experts_row, found, moe.device, rounded, exact, plain, dtype)
            yield attempted({**row, "variant": implementation}, measured)


def _experts_of(moe: Moe, dtype: str, implementation: str) -> Optional[Module]:
    """The experts with one implementation, None where this transformers has no such choice."""
    experts = blocks(instance(moe.built, dtype, "eager").to(moe.device))[0].experts
    own = getattr(experts, "config", None)
    if not hasattr(own, "_experts_implementation"):
        return experts if implementation == "eager" else None
    experts.config = copy.deepcopy(own)
    experts.config._experts_implementation = implementation
    return experts


def _through(experts: Module, device: str, x: Tensor, served: Tensor, weights: Tensor) -> Tensors:
    """Output and gradients of the experts."""
    import torch

    inputs = x.to(device, copy=True).requires_grad_()
    shares = weights.to(device, copy=True).requires_grad_()
    out = experts(inputs, served.to(device), shares)
    out.backward(torch.ones_like(out))
    found = {"output": out, "gradient of the input": inputs.grad, "gradient of the weights": shares.grad}
    found.update({"gradient of " + name: each.grad for name, each in experts.named_parameters()})
    return {name: value.detach().double().cpu() for name, value in found.items() if value is not None}


def _experts_plainly(experts: Module, x: Tensor, served: Tensor, weights: Tensor) -> Tensors:
    """The same by a plain loop over the experts."""

    class Loop:
        named_parameters = experts.named_parameters

        def __call__(self, inputs: Tensor, chosen: Tensor, shares: Tensor) -> Tensor:
            count = experts.gate_up_proj.shape[0]
            parts = [
                (shares * (chosen == number)).sum(-1, keepdim=True).to(inputs.dtype) * expert(experts, number, inputs)
                for number in range(count)
            ]
            return sum(parts[1:], parts[0])

    for parameter in experts.parameters():
        parameter.grad = None
    return _through(Loop(), str(next(experts.parameters()).device), x, served, weights)


def _experts_exactly(experts: Module, x: Tensor, served: Tensor, weights: Tensor) -> Tensors:
    return _experts_plainly(copy.deepcopy(experts).cpu().double(), x.double(), served, weights.double())


def _experts_row(
    experts: Module, device: str, inputs: Tuple[Tensor, Tensor, Tensor], exact: Tensors, plain: Tensors, dtype: str
) -> Row:
    return _experts_compared(_through(experts, device, *inputs), exact, plain, dtype)


def _experts_compared(found: Tensors, exact: Tensors, plain: Tensors, dtype: str) -> Row:
    rows = []
    for name, truth in exact.items():
        if name not in found:
            return {"tensor": name, "theta": float("inf"), "rho": 0.0, "nonfinite": 0, "says": "there is no " + name}
        share, usual = (float((each[name] - truth).norm() / truth.norm()) for each in (found, plain))
        rows.append(_scored(name, share, usual, dtype, "the %s is off by %.2g of its size" % (name, share)))
    return max(rows, key=lambda row: float(row["theta"]))


def _accumulated_rows(moe: Moe, request: Request) -> Iterator[Row]:
    """The auxiliary part of the losses of equal micro-batches, as the Trainer sums them, against their mean."""
    model = instance(moe.built, "float32", "eager").to(moe.device)
    kinds = [each.kind for each in inspect.signature(model.forward).parameters.values()]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        return  # takes no num_items_in_batch, so the Trainer divides the whole loss
    seed = int(request.get("seed", 0))
    chosen = [each[:32] for each in sequences(moe.built.vocabulary, moe.built.special_ids, seed) if len(each) >= 32]
    parts = [padded([sequence], "right", moe.built.pad_id) for sequence in chosen[:MICRO_BATCHES]]
    count = sum(int((part["labels"][:, 1:] != -100).sum()) for part in parts)
    row = {"case": "%s, %d micro-batches" % (moe.name, len(parts)), "dtype": "float32"}
    if int((request.get("training") or {}).get("gradient_accumulation_steps") or 1) < 2:
        row["recorded"] = "the training does not accumulate gradients"

    def measured() -> Row:
        total, text, auxiliary = 0.0, 0.0, []
        for part in parts:
            inputs = on(part, moe.device)
            found = model(**inputs, num_items_in_batch=count, output_router_logits=True)
            total += float(found.loss.detach())
            text += float(model(**inputs, num_items_in_batch=count, output_router_logits=False).loss.detach())
            auxiliary.append(float(found.aux_loss.detach()))
        mean = COEFFICIENT * sum(auxiliary) / len(parts)
        ratio = (total - text) / mean
        says = "the auxiliary loss is counted %.3g times in a step of %d micro-batches" % (ratio, len(parts))
        return {**_scored("weight of the auxiliary loss", abs(ratio - 1), 0.0, "bfloat16", says), "ratio": ratio}

    yield {**row, "variant": PLAIN, "control": True, "tensor": "mean", "theta": 0.0, "rho": 0.0, "nonfinite": 0}
    yield attempted({**row, "variant": "losses with num_items_in_batch"}, measured)
