"""Attention and its gradients: the exact values, their rounding budgets, and plain attention beside them.

Words, theta and rho as in `_criterion.py`. Every tensor is float64 on the CPU.
"""

from __future__ import annotations

import math
from typing import Dict, Optional, Tuple

from compatcheck.probes._criterion import (
    RANK,
    UNIT_ROUNDOFF,
    Row,
    Tensor,
    Tensors,
    accumulation,
    compare,
    verdict,
    within_budget,
)


def attention_logits(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """Scores plus mask, as a float32 accumulator holds them, in float64; ``mask`` is additive or bool.

    The sum is rounded to float32 because a finite mask such as finfo.min absorbs the scores there.
    """
    import torch

    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -math.inf)
    logits = scores + mask
    return torch.where(mask == 0, logits, logits.float().double())


def attention_exact(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, upstream: Tensor, ignored_rows: Tensor) -> Tensors:
    """Attention, its gradients and intermediate values; all tensors are float64.

    ``ignored_rows`` (bool, one per query) are rows whose output is 0 by convention.
    """
    import torch

    scale = 1 / math.sqrt(q.shape[-1])
    logits = attention_logits(q, k, mask)
    p = torch.softmax(logits, -1).masked_fill(ignored_rows, 0.0)
    out = p @ v
    dp = upstream @ v.transpose(-1, -2)
    delta = (upstream * out).sum(-1, keepdim=True)
    ds = p * (dp - delta)
    return {
        "logits": logits,
        "p": p,
        "dp": dp,
        "delta": delta,
        "ds": ds,
        "out": out,
        "dq": scale * ds @ k,
        "dk": scale * ds.transpose(-1, -2) @ q,
        "dv": p.transpose(-1, -2) @ upstream,
    }


def attention_budget(inputs: Tensors, exact: Tensors, dtype: str, roundoff: float, tensor_cores: bool) -> Tensors:
    """Budgets of out, dq, dk and dv; ``inputs`` holds q, k, v and upstream."""
    q, k, v, upstream = (inputs[name] for name in ("q", "k", "v", "upstream"))
    u, scale, p, ds = UNIT_ROUNDOFF[dtype], 1 / math.sqrt(q.shape[-1]), exact["p"], exact["ds"]
    length, transposed = k.shape[-2], p.transpose(-1, -2)

    def acc(terms: int, size: Tensor, norm: Tensor) -> Tensor:
        return accumulation(terms, size, norm, roundoff, tensor_cores)

    ep = _probability_error(inputs, exact, acc, roundoff)
    eds = _score_gradient_error(inputs, exact, ep, acc, u)

    def product(gradient: Tensor, weights: Tensor, error: Tensor, other: Tensor) -> Tensor:
        norm = scale * _norm(weights, other)
        return 2 * u * gradient.abs() + 8 * scale * _norm(error, other) + 8 * u * norm + acc(length, gradient, norm)

    out_norm, dv_norm = _norm(p, v), _norm(transposed, upstream)
    return {
        "out": 2 * u * exact["out"].abs() + ep @ v.abs() + 8 * u * out_norm + acc(length, exact["out"], out_norm),
        "dq": product(exact["dq"], ds, eds, k),
        "dk": product(exact["dk"], ds.transpose(-1, -2), eds.transpose(-1, -2), q),
        "dv": 2 * u * exact["dv"].abs()
        + ep.transpose(-1, -2) @ upstream.abs()
        + 16 * u * dv_norm
        + acc(length, exact["dv"], dv_norm),
    }


def attention_baseline(
    inputs: Tensors, mask: Tensor, ignored_rows: Tensor, dtype: str, between: Optional[str] = None
) -> Tensors:
    """Eager attention and its gradients with products and softmax in float32, stored in ``dtype``.

    ``between`` is the dtype of what is stored on the way, ``dtype`` itself where none is given.
    """
    import torch

    def stored(value: Tensor) -> Tensor:
        return value.to(getattr(torch, between or dtype)).float()

    q, k, v, upstream = (inputs[name].float() for name in ("q", "k", "v", "upstream"))
    scale = 1 / math.sqrt(q.shape[-1])
    scores = stored(q @ k.transpose(-1, -2) * scale)
    logits = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.float()
    p = torch.softmax(logits, -1).masked_fill(ignored_rows, 0.0)
    out = stored(stored(p) @ v)
    dp = stored(upstream @ v.transpose(-1, -2))
    ds = stored(p * (dp - (p * dp).sum(-1, keepdim=True)))
    gradients = {
        "out": out,
        "dq": stored(scale * ds @ k),
        "dk": stored(scale * ds.transpose(-1, -2) @ q),
        "dv": stored(stored(p).transpose(-1, -2) @ upstream),
    }
    return {name: value.to(getattr(torch, dtype)).double() for name, value in gradients.items()}


class Attention:
    """Judges candidates of one attention problem; what does not depend on the candidate is kept.

    ``dead`` marks the query rows without a key, of shape (batch, 1, queries, 1). k and v may have fewer heads
    than q; each then serves as many heads of q in turn.
    """

    def __init__(
        self, inputs: Tensors, mask: Tensor, dead: Tensor, dtype: str, roundoff: float, tensor_cores: bool
    ) -> None:
        self.mask, self.dead, self.dtype = mask, dead, dtype
        self.groups = inputs["q"].shape[1] // inputs["k"].shape[1]
        self.inputs = {
            name: value.repeat_interleave(self.groups, 1) if name in "kv" else value for name, value in inputs.items()
        }
        self.roundoff, self.tensor_cores = roundoff, tensor_cores
        self.known: Dict[bool, Tuple[Tensors, ...]] = {}

    def worst(self, candidate: Tensors, skip_dead_output: bool, theta_alone: bool = False) -> Row:
        """The worst of out, dq, dk and dv; dead rows may be the mean of v or 0, told by the output.

        ``theta_alone``: rho says nothing there, because the gradients are small differences of large terms, or a
        result has few.
        """
        meaning = self.dead_output(candidate["out"])
        exact, budget, baseline = self._reference(meaning == "zero")
        found = []
        for tensor in ("out", "dq", "dk", "dv"):
            values = [candidate[tensor], exact[tensor], baseline[tensor]]
            if skip_dead_output and tensor == "out":
                values = [value.masked_fill(self.dead, 0.0) for value in values]
            row = compare(values[0], values[1], budget[tensor], values[2], self.dtype)
            if theta_alone:
                row["rho"] = within_budget(row["rho"], values[0] - values[1], budget[tensor])
            found.append({"tensor": tensor, **row})
        worst = max(found, key=lambda row: (RANK[verdict(row["theta"], row["rho"])], row["theta"]))
        return {**worst, "dead_output": meaning}

    def plain(self, device: str) -> Tensors:
        """Plain attention in float32 on the device, rounded once: the control."""
        inputs = {name: value.float().to(device) for name, value in self.inputs.items()}
        mask, ignored = self.mask.to(device), self.dead.new_zeros(self.dead.shape).to(device)
        if mask.dtype != self.dead.dtype:
            mask = mask.float()
        else:
            ignored = self.dead.to(device)
        return self._folded(attention_baseline(inputs, mask, ignored, self.dtype, "float32"))

    def dead_output(self, out: Tensor) -> str:
        """What dead rows came out as: mean (of v), zero, nan or other; none where there are none."""
        rows = self.dead.expand(out.shape[:-1] + (1,)).squeeze(-1)
        if not rows.any():
            return "none"
        found = out[rows]
        mean = self.inputs["v"].mean(-2, keepdim=True).expand_as(out)[rows]
        if found.isnan().any():
            return "nan"
        if not found.any():
            return "zero"
        return "mean" if float((found - mean).norm()) < 0.1 * float(mean.norm()) else "other"

    def _reference(self, zero: bool) -> Tuple[Tensors, ...]:
        if zero not in self.known:
            ignored, i = self.dead & zero, self.inputs
            exact = attention_exact(i["q"], i["k"], i["v"], self.mask, i["upstream"], ignored)
            budget = attention_budget(i, exact, self.dtype, self.roundoff, self.tensor_cores)
            baseline = attention_baseline(i, self.mask, ignored, self.dtype)
            self.known[zero] = tuple(self._folded(values) for values in (exact, budget, baseline))
        return self.known[zero]

    def _folded(self, values: Tensors) -> Tensors:
        """The gradients of k and v summed over the heads of q that share them; the same for budgets."""
        folded = {name: value.double().cpu() for name, value in values.items()}
        for name in ("dk", "dv"):
            batch, heads, length, width = folded[name].shape
            folded[name] = folded[name].view(batch, heads // self.groups, self.groups, length, width).sum(2)
        return folded


def _norm(left: Tensor, right: Tensor) -> Tensor:
    """2-norm over the terms of every element of ``left @ right``."""
    return (left.square() @ right.square()).sqrt()


def _probability_error(inputs: Tensors, exact: Tensors, acc: Tensor, a: float) -> Tensor:
    """Budget of the softmax's output: errors of the scores, of exp and of its argument."""
    import torch

    q, k, logits, p = inputs["q"], inputs["k"], exact["logits"], exact["p"]
    scale = 1 / math.sqrt(q.shape[-1])
    scores = scale * (q @ k.transpose(-1, -2))
    error = acc(q.shape[-1], scores, scale * _norm(q, k.transpose(-1, -2)))
    rounding = a * logits.abs()
    error = error + torch.where(rounding < 1, rounding, torch.zeros_like(rounding))
    worst = error.masked_fill(p == 0, 0.0).amax(-1, keepdim=True)
    depth = (logits.amax(-1, keepdim=True) - logits).masked_fill(p == 0, 0.0)
    return p * (2 * worst + a * (8 + 2 * depth))


def _score_gradient_error(inputs: Tensors, exact: Tensors, ep: Tensor, acc: Tensor, u: float) -> Tensor:
    """Budget of dS = P (dP - delta), where delta may come from the rounded output."""
    v, upstream, head_dim = inputs["v"], inputs["upstream"], inputs["v"].shape[-1]
    dp, delta, p = exact["dp"], exact["delta"], exact["p"]
    delta_norm = (upstream * exact["out"]).norm(dim=-1, keepdim=True)
    inner = acc(head_dim, dp, _norm(upstream, v.transpose(-1, -2))) + acc(head_dim, delta, delta_norm)
    inner = inner + 2 * u * dp.abs() + 8 * u * delta_norm
    return ep * (dp - delta).abs() + p * inner + 2 * u * exact["ds"].abs()
