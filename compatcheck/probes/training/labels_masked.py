"""Samples whose labels are all masked.

Cross-entropy averages over the labels that are not -100. If no such label is left, the loss is 0/0 = NaN and the
gradient is exactly 0: the log of the transformers Trainer shows `loss: 0.0` with `grad_norm: 0.0`
(`logging_nan_inf_filter` replaces the NaN). Usual causes: a chat template that returns a nested list, truncation that
leaves only the prompt, or a tokenizer and a collator from different releases.

torch is designed this way, so without the user's own samples the probe can neither confirm nor rule out a fault: it
shows the mechanism and is skipped. With samples, it fails if all labels of a whole batch can be masked, that is, if at
least `batch_size` samples have no target, or if labels are nested lists. A causal model shifts its labels by one: the
first label of a sample is never a target. If fewer samples than a batch have no target, the outcome is a watch, not a
failure.

Request: samples (lists of labels) or samples_file (JSON lines with `labels`), batch_size (default 1).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple

from compatcheck.probes._criterion import Measured, Request, Row, Stage, Tensor

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 60.0
PROFILE: str = "deep"
SECONDS: float = 0.2
ASKED_BY: Tuple[str, ...] = ("samples_file", "samples")
SEEDED = False

IGNORED = -100
MOST_NAMED = 16


def measure(request: Request, stage: Stage) -> Row:
    """Counts of samples (numbered from 1) without a target, and what an all-masked batch gives here."""
    stage("mechanism")
    measured: Row = {"mechanism": _mechanism(), "batch_size": int(request.get("batch_size") or 1)}
    stage("samples")
    try:
        samples = _samples(request)
        if samples is not None:
            measured["samples"] = _count(samples)
    except (OSError, ValueError) as error:
        measured["unreadable"] = str(error)
    return measured


def judge(measured: Measured) -> tuple[Outcome, str]:
    """Only the user's own samples can fail or pass."""
    shown = measured["mechanism"]
    if "unreadable" in measured:
        return "skip", f"the samples cannot be read: {measured['unreadable']}"
    if "samples" not in measured:
        seen = f"loss {shown['loss']} and gradient norm {shown['gradient_norm']}"
        return "skip", f"no samples were given; on this torch, a batch whose labels are all masked gives {seen}"
    return _judge_counts(measured["samples"], measured["batch_size"])


def _judge_counts(counts: Measured, batch_size: int) -> tuple[Outcome, str]:
    total, empty, nested = counts["total"], counts["without_target"], counts["nested"]
    where = "sample " + ", ".join(str(number) for number in counts["first"])
    seen = f"{empty} of {total} samples have no label to learn from ({where}; batch size {batch_size})"
    if not total:
        return "skip", "the samples given are empty"
    if nested:
        return "fail", f"the labels of {nested} of {total} samples are nested lists ({where})"
    if empty and empty >= min(batch_size, total):
        return "fail", seen
    if empty:
        return "watch", f"{seen}: too few to fill a batch"
    return "pass", f"each of {total} samples has a label to learn from (fewest: {counts['fewest_targets']})"


def _mechanism() -> Dict[str, float]:
    import torch
    import torch.nn.functional as F

    logits = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = F.cross_entropy(logits, torch.full((4,), IGNORED), ignore_index=IGNORED)
    loss.backward()
    gradient = logits.grad
    return {
        "loss": float(loss),
        "gradient_norm": float("nan") if gradient is None else float(gradient.norm()),
    }


def _samples(request: Request) -> Optional[Iterable[Any]]:
    if request.get("samples_file"):
        return _read(str(request["samples_file"]))
    samples: Optional[Iterable[Any]] = request.get("samples")
    return samples


def _read(path: str) -> Iterator[Any]:
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                yield json.loads(line)["labels"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: not a JSON object with labels") from error


def _count(samples: Iterable[Any]) -> Row:
    total, empty, nested, fewest = 0, 0, 0, None
    first: List[int] = []
    for number, labels in enumerate(samples, 1):
        total += 1
        targets, is_nested = _targets(labels, number)
        nested += is_nested
        empty += targets == 0
        fewest = targets if fewest is None else min(fewest, targets)
        if targets == 0 and len(first) < MOST_NAMED:
            first.append(number)
    return {
        "total": total,
        "without_target": empty,
        "nested": nested,
        "fewest_targets": fewest,
        "first": first,
    }


def _targets(labels: Tensor, number: int) -> Tuple[int, bool]:
    """How many labels a causal model learns from, and whether they are nested (then none)."""
    if not isinstance(labels, list):
        raise ValueError(f"sample {number}: labels are not a list")
    if any(isinstance(label, list) for label in labels):
        return 0, True
    return sum(1 for label in labels[1:] if label != IGNORED), False
