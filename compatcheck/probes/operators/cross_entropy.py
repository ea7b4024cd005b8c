"""Cross-entropy over a vocabulary, and its gradient.

The loss of a language model: some labels are ignored (-100), one label is at the largest logit, and the logits are so
large that the softmax is sharp. Mean and sum are tested, from float32 logits and from 16-bit logits. Some models
convert 16-bit logits to float32 first and others do not, so both are tested.

Bound of the loss: a (8 + 8 sqrt(V)) (|lse| + max |x|) and the sum over n labels. Bound of the gradient: u |g| + P / n
(a (2 d + 8 + 8 sqrt(V))) + 4 a / n at the label, where d is the distance below the largest logit. If 16-bit logits are
not converted, the log-probabilities l may be stored in 16 bits: this adds 8 u |l| / n to the loss and u |l| P / n to
the gradient, and each of them may be rounded once more. Baseline: the plain formula in float32, rounded. A failure
means an average over the wrong number of labels, or log-probabilities in 16 bits (theta 19).

If all labels are ignored, the mean is 0 / 0, by definition NaN, and the sum is 0. The probe reports this as a fact
(`all_ignored`), with the resulting gradient, and not as a failure.

Request: seed, device, dtype.
"""

from __future__ import annotations

from functools import partial
from typing import Dict, Iterator

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Row, Stage, Tensor, Tensors, accumulation
from compatcheck.probes._criterion import judge as judge
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.operators._operator import Problem, control, draw, dtypes_of, place, solved, trial

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE = "smoke"
SECONDS: float = 0.6

SHAPES = ((24, 130), (6, 32000))
ON_CUDA = ((12, 151936),)
IGNORED = -100
SPREAD = 4.0
A = UNIT_ROUNDOFF["float32"]
STORED = "torch rounds intermediate results of 16-bit logits to 16 bits on a CPU"


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each shape, dtype of the logits and way to compute the loss; then what comes of ignored labels."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    for tokens, vocabulary in SHAPES + (ON_CUDA if device == "cuda" else ()):
        for reduction in ("mean", "sum"):
            case = f"{reduction} over {tokens} labels of {vocabulary}"
            inputs = _inputs(request, case, tokens, vocabulary)
            for dtype in dtypes_of(request, device):
                stage(f"{case} {dtype}")
                yield from _rows(case, dtype, inputs, reduction, device)
    stage("all labels ignored")
    return {"device": device, "all_ignored": _all_ignored(device)}


def _inputs(request: Request, case: str, tokens: int, vocabulary: int) -> Tensors:
    """Logits and labels; every third label is ignored, the second is the largest logit's."""
    import torch

    inputs = draw(request, case, x=(tokens, vocabulary))
    inputs["x"] *= SPREAD
    generator = torch.Generator().manual_seed(int(request.get("seed", 0)) + tokens)
    labels = torch.randint(0, vocabulary, (tokens,), generator=generator)
    labels[::3] = IGNORED
    labels[1] = inputs["x"][1].argmax()
    return {**inputs, "labels": labels}


def _rows(case: str, dtype: str, inputs: Tensors, reduction: str, device: str) -> Iterator[Row]:
    def formula(i: Tensors) -> Tensors:
        return _formula(i, reduction)

    problem = solved(
        case, dtype, inputs, formula, partial(_budget, reduction=reduction), few=("loss", "dx"), wide=("loss",)
    )
    yield control(problem, formula, device)
    yield trial(problem, "float32 logits", _candidate, device, reduction, True)
    if dtype == "float32":
        return
    narrow = {name: value + _stored(problem, reduction)[name] for name, value in problem.budget.items()}
    marks: Row = {"recorded": STORED} if device == "cpu" else {}
    yield trial(problem, "16-bit logits", _candidate, device, reduction, False, budget=narrow, **marks)


def _candidate(problem: Problem, device: str, reduction: str, upcast: bool) -> Tensors:
    import torch.nn.functional as F

    leaves = place(problem.inputs, problem.dtype, device)
    logits = leaves["x"].float() if upcast else leaves["x"]
    loss = F.cross_entropy(logits, leaves["labels"], ignore_index=IGNORED, reduction=reduction)
    loss.backward()
    return {"loss": loss, "dx": leaves["x"].grad}


def _formula(i: Tensors, reduction: str) -> Tensors:
    x, kept = i["x"], i["labels"] != IGNORED
    shifted = x - x.amax(-1, keepdim=True)
    logs = shifted - shifted.exp().sum(-1, keepdim=True).log()
    at, weight = _label_logits(i), 1.0 / float(kept.sum()) if reduction == "mean" else 1.0
    return {"loss": -(logs * at).sum() * weight, "dx": (logs.exp() - at) * kept[:, None] * weight}


def _label_logits(i: Tensors) -> Tensor:
    """1 at every label that counts."""
    import torch

    kept = i["labels"] != IGNORED
    at = torch.zeros_like(i["x"])
    rows = torch.arange(len(kept), device=at.device)[kept]
    at[rows, i["labels"][kept]] = 1.0
    return at


def _budget(i: Tensors, exact: Tensors, dtype: str, reduction: str) -> Tensors:
    x, u, columns = i["x"], UNIT_ROUNDOFF[dtype], i["x"].shape[-1]
    kept = i["labels"] != IGNORED
    tokens = int(kept.sum())
    weight = 1.0 / tokens if reduction == "mean" else 1.0
    lse, top = x.logsumexp(-1, keepdim=True), x.amax(-1, keepdim=True)
    each = A * (8 + 8 * columns**0.5) * (lse.abs() + x.abs().amax(-1, keepdim=True)) * kept[:, None]
    terms = ((x - lse) * _label_logits(i)).norm()
    p = (x - lse).exp() * kept[:, None]
    relative = A * (2 * (top - x) + 8 + 8 * columns**0.5)
    return {
        "loss": weight * (each.sum() + accumulation(tokens, exact["loss"] / weight, terms, A, False)),
        "dx": u * exact["dx"].abs() + weight * (p * relative + 4 * A * _label_logits(i)),
    }


def _stored(problem: Problem, reduction: str) -> Tensors:
    """What log-probabilities, loss and 1 / n stored in the dtype of 16-bit logits add to the budget."""
    x, u = problem.inputs["x"], UNIT_ROUNDOFF[problem.dtype]
    kept = (problem.inputs["labels"] != IGNORED)[:, None]
    weight = 1.0 / float(kept.sum()) if reduction == "mean" else 1.0
    logs = x - x.logsumexp(-1, keepdim=True)
    loss = 8 * u * (logs * _label_logits(problem.inputs)).norm() * weight + 2 * u * problem.exact["loss"].abs()
    return {"loss": loss, "dx": u * problem.exact["dx"].abs() + u * logs.abs() * logs.exp() * kept * weight}


def _all_ignored(device: str) -> Row:
    """Loss and gradient norm of a batch without a label, by reduction."""
    import torch
    import torch.nn.functional as F

    found = {}
    for reduction in ("mean", "sum"):
        logits = torch.zeros(3, 5, device=device, requires_grad=True)
        labels = torch.full((3,), IGNORED, device=device)
        loss = F.cross_entropy(logits, labels, ignore_index=IGNORED, reduction=reduction)
        loss.backward()
        norm = float(logits.grad.norm()) if logits.grad is not None else None
        found[reduction] = {"loss": float(loss.detach()), "gradient_norm": norm}
    return found
