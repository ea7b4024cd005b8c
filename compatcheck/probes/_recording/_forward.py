"""Passes of a model on its own: padded on either side, packed, in evaluation, under autocast, checkpointed."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, Dict, Iterator, Sequence, Tuple

from compatcheck.probes._criterion import Request, Row
from compatcheck.probes._recording._case import Case
from compatcheck.probes._recording._models import LENGTHS, Subject, late, make, packed, padded, sequences
from compatcheck.probes._recording._record import Record, Watcher, masked

_BATCHES = ("right padding", "left padding", "no padding", "packed")
LATE = 1000
"""A position that bfloat16 rounds to a multiple of 4, so that rotary embeddings in 16 bits lose it."""


def cases(subject: Subject, request: Request, *, all_attentions: bool) -> Iterator[Case]:
    """Every case of one model; those of the user's attention alone where the request names it."""
    asked = (request.get("training") or {}).get("attention")
    attentions = [each for each in subject.attentions if asked in (None, each)] or list(subject.attentions)
    packages = ("transformers",)
    for attention in attentions if all_attentions else attentions[-1:]:
        for batch in _BATCHES:
            name = f"{subject.name}, {attention}, {batch}"
            yield Case(f"{name}: evaluation", "float32", packages, partial(_evaluate, subject, attention, batch))
            yield Case(f"{name}: training", "float32", packages, partial(_train, subject, attention, batch))
    last = attentions[-1]
    kinds: Sequence[Tuple[str, Dict[str, Any]]] = (
        ("bfloat16 autocast", {"autocast": True}),
        ("checkpointed", {"checkpointing": True}),
    )
    for label, options in kinds:
        dtype = "bfloat16" if options.get("autocast") else "float32"
        run = partial(_train, subject, last, "right padding", **options)
        yield Case(f"{subject.name}, {last}, right padding: {label}", dtype, packages, run)
    if (getattr(subject.config, "max_position_embeddings", None) or 0) >= LATE + LENGTHS[0]:
        run = partial(_evaluate, subject, last, "late positions", autocast=True)
        yield Case(f"{subject.name}, {last}, late positions: bfloat16 autocast", "bfloat16", packages, run)


def _batch(subject: Subject, kind: str) -> Row:
    whole = kind == "no padding"
    chosen = sequences(subject.vocabulary, [max(LENGTHS)] * 2) if whole else sequences(subject.vocabulary)
    pad = getattr(subject.config, "pad_token_id", None)
    if kind == "late positions":
        return late(chosen[0], LATE)
    return packed(chosen) if kind == "packed" else padded(chosen, kind.split()[0], pad if isinstance(pad, int) else 0)


def _precision(autocast: bool) -> Any:
    import torch

    return torch.autocast("cpu", dtype=torch.bfloat16) if autocast else contextlib.nullcontext()


def _evaluate(
    subject: Subject, attention: str, kind: str, record: Record, shift: float, autocast: bool = False
) -> None:
    """Outputs of every module in evaluation, where dropout is configured and must not act."""
    import torch

    model = make(subject, attention=attention, shift=shift, dropout=True).eval()
    batch = _batch(subject, kind)
    labels = batch.pop("labels")
    mask = batch.get("attention_mask")
    with torch.no_grad(), _precision(autocast), Watcher(record, model, mask):
        found = model(**batch, labels=labels)
    record.tensor("logits", "", masked(found.logits, mask))
    record.number("loss", float(found.loss))


def _train(
    subject: Subject,
    attention: str,
    kind: str,
    record: Record,
    shift: float,
    autocast: bool = False,
    checkpointing: bool = False,
) -> None:
    """Loss and gradients of one batch."""
    model = make(subject, attention=attention, shift=shift)
    if checkpointing:
        model.gradient_checkpointing_enable()
    with _precision(autocast):
        loss = model(**_batch(subject, kind)).loss
    record.number("loss", float(loss.detach()))
    loss.backward()
    record.gradients(model)
