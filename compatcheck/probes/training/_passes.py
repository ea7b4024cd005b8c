"""One pass forwards and backwards of a batch, and how far its loss and gradients are from the exact ones.

Bounds, as relative errors in the 2-norm of each gradient tensor: 16 u in 16 bits and 64 u in float32 (u the unit
roundoff of the products); 32 u and 512 u for vectors and other tensors of few elements, whose terms may cancel in
each of them; those of the loss 4 u (some models compute it in 16 bits) and 16 u. They were measured, as no sharp
bound of a whole model is known: healthy models of many families stay below half of them, and a lost, doubled or
leaked term gives more than ten times as much. A tensor whose exact gradient is much smaller than the rest, such as
the bias of a key, is measured against SMALL times the size that its share of the parameters would have.
"""

from __future__ import annotations

import math
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from compatcheck.probes._criterion import RANK, UNIT_ROUNDOFF, Module, Row, Tensor, Tensors, verdict
from compatcheck.probes.training._batches import on, predicted
from compatcheck.probes.training._recipe import Recipe, computing, trainable

GRADIENT_BOUND = {"float32": 64, "bfloat16": 16, "float16": 16}
LOSS_BOUND = {"float32": 16, "bfloat16": 4, "float16": 4}
SMALL = 2.0**-4
FEW = 4096
FEW_FACTOR = {"float32": 8, "bfloat16": 2, "float16": 2}
RELAXED = 4
SCALE = 2.0**10


class Pass(NamedTuple):
    """Loss and gradients by plain name, float64 on the CPU; None for a parameter that got no gradient."""

    loss: float
    gradients: Tensors

    @property
    def norm(self) -> float:
        """The 2-norm of all gradients together."""
        found = [gradient for gradient in self.gradients.values() if gradient is not None]
        return math.sqrt(sum(float(gradient.norm()) ** 2 for gradient in found))


def run(model: Module, recipe: Recipe, batches: Sequence[Mapping[str, Tensor]], device: str = "cpu") -> Pass:
    """Loss and gradients of the batches together, each weighted by the tokens it predicts."""
    model.zero_grad(set_to_none=True)
    total = sum(predicted(dict(batch)) for batch in batches)
    scale = SCALE if recipe.scaler else 1.0
    loss = 0.0
    for batch in batches:
        share = predicted(dict(batch)) / total
        with computing(recipe, device):
            found = model(**on(dict(batch), device)).loss
        (found * (share * scale)).backward()
        loss += float(found.detach()) * share
    return Pass(loss, {name: _taken(value.grad, scale) for name, value in trainable(model).items()})


def sums(model: Module, chosen: Sequence[Mapping[str, Tensor]], sizes: Sequence[int]) -> Dict[int, Pass]:
    """Of float64 singles, the pass of the first ``size`` together, for each size; the loss is computed here.

    Call it inside `float64_everywhere`. The loss is not the model's own, so that a fault there shows.
    """
    import torch

    model.zero_grad(set_to_none=True)
    found: Dict[int, Pass] = {}
    loss, tokens = 0.0, 0
    for number, batch in enumerate(chosen, 1):
        inputs = {key: value for key, value in batch.items() if key != "labels"}
        logits = model(**inputs).logits
        targets = batch["labels"][:, 1:].reshape(-1)
        total = torch.nn.functional.cross_entropy(
            logits[:, :-1].reshape(len(targets), -1), targets, ignore_index=-100, reduction="sum"
        )
        total.backward()
        loss, tokens = loss + float(total.detach()), tokens + predicted(dict(batch))
        if number in sizes:
            gradients = {
                name: torch.zeros_like(value) if value.grad is None else value.grad / tokens
                for name, value in trainable(model).items()
            }
            found[number] = Pass(loss / tokens, {name: value.detach().clone() for name, value in gradients.items()})
    return found


def compared(candidate: Pass, exact: Pass, baseline: Optional[Pass], dtype: str, magnifying: bool = False) -> Row:
    """The worst of loss and gradients as theta, rho, nonfinite and tensor; ``lost`` names gradients that vanished.

    rho is the tensor's error over the larger of the baseline's own in that tensor and in all of them, and half the
    bound for a tensor that cancels or has few elements. A baseline that is not finite is none. ``magnifying``: the
    bound is RELAXED times the baseline's error where that is more, since a recurrence, or a norm over the few
    dimensions of a latent projection, magnifies rounding by an amount that depends on the data.
    """
    scales = _scales(exact)
    if baseline is not None and not math.isfinite(_overall(baseline, exact)):
        baseline = None
    overall = _relative(baseline, exact, scales) if baseline else {}
    common = _overall(baseline, exact) if baseline else 0.0
    unit = UNIT_ROUNDOFF[dtype]
    loss_bound = unit * LOSS_BOUND[dtype] * max(abs(exact.loss), 1.0)
    loss_error = abs(candidate.loss - exact.loss)
    loss_rho = loss_error / max(abs(baseline.loss - exact.loss), loss_bound / 2) if baseline else 0.0
    rows = [_scored("loss", loss_error / loss_bound, loss_rho, int(not math.isfinite(candidate.loss)))]
    lost = []
    for name, error in _relative(candidate, exact, scales).items():
        gradient = candidate.gradients[name]
        if float(exact.gradients[name].norm()) > SMALL * scales[name] and (gradient is None or not gradient.any()):
            lost.append(name)
        missing = 0 if gradient is None else int((~gradient.isfinite()).sum())
        floor = max(overall.get(name, 0.0), common, unit / 10)
        reference = exact.gradients[name]
        few = reference.dim() == 1 or reference.numel() < FEW
        bound = unit * GRADIENT_BOUND[dtype] * (FEW_FACTOR[dtype] if few else 1)
        if magnifying:
            bound = max(bound, RELAXED * floor)
        if few or float(reference.norm()) < scales[name]:
            floor = max(floor, bound / 2)
        rows.append(_scored(f"gradient of {name}", error / bound, error / floor if baseline else 0.0, missing))
    worst = max(rows, key=lambda row: (RANK[verdict(row["theta"], row["rho"])], row["theta"]))
    nonfinite = sum(row["nonfinite"] for row in rows)
    return {**worst, "nonfinite": nonfinite, "loss": candidate.loss, "exact_loss": exact.loss, "lost": lost[:8]}


def _scored(tensor: str, theta: float, rho: float, nonfinite: int) -> Row:
    if nonfinite:
        theta = rho = math.inf
    return {"tensor": tensor, "theta": theta, "rho": rho, "nonfinite": nonfinite}


def _taken(gradient: Tensor, scale: float) -> Tensor:
    return None if gradient is None else gradient.detach().double().cpu() / scale


def _scales(exact: Pass) -> Dict[str, float]:
    """The size that each tensor's error is measured against."""
    total, count = _size(exact)
    return {
        name: max(float(gradient.norm()), SMALL * total * math.sqrt(gradient.numel() / count)) or 1.0
        for name, gradient in exact.gradients.items()
    }


def _size(exact: Pass) -> Tuple[float, int]:
    return exact.norm, sum(gradient.numel() for gradient in exact.gradients.values())


def _relative(candidate: Pass, exact: Pass, scales: Mapping[str, float]) -> Dict[str, float]:
    return {name: _error(candidate, exact, name) / scales[name] for name in exact.gradients}


def _overall(candidate: Pass, exact: Pass) -> float:
    error = math.sqrt(sum(_error(candidate, exact, name) ** 2 for name in exact.gradients))
    return error / (_size(exact)[0] or 1.0)


def _error(candidate: Pass, exact: Pass, name: str) -> float:
    gradient, reference = candidate.gradients[name], exact.gradients[name]
    return float((reference if gradient is None else gradient - reference).norm())
