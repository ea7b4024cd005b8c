"""A loop of one's own on accelerate: accumulation, clipping and the schedule over two epochs."""

from __future__ import annotations

from functools import partial
from typing import Any, Iterator, Sequence

from compatcheck.probes._criterion import Request, Tensors
from compatcheck.probes._recording._case import Case
from compatcheck.probes._recording._models import Subject, make, padded, sequences
from compatcheck.probes._recording._record import Record, copies

_ROWS = (9, 24, 17, 5, 12, 21)
_ACCUMULATION = 2


def cases(subject: Subject, request: Request) -> Iterator[Case]:
    """The loop in float32, with an odd number of batches, so that an epoch ends within an accumulation."""
    yield Case(f"{subject.name}, accelerate loop", "float32", ("transformers", "accelerate"), partial(_run, subject))


def _run(subject: Subject, record: Record, shift: float) -> None:
    import torch
    from accelerate import Accelerator
    from torch.utils.data import DataLoader

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=_ACCUMULATION)
    model = make(subject, shift=shift)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    rows = [{"input_ids": each} for each in sequences(subject.vocabulary, _ROWS, stream=4)]
    loader: Any = DataLoader(rows, batch_size=2, shuffle=False, collate_fn=_collate)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    inner = accelerator.unwrap_model(model)
    for _ in range(2):
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norm = accelerator.clip_grad_norm_(model.parameters(), 0.5)
                    record.step += 1
                    record.number("gradient norm", float(norm))
                    record.gradients(inner)
                before = copies(inner)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                if accelerator.sync_gradients:
                    record.updates(before, inner)
                    record.number("learning rate", float(schedule.get_last_lr()[0]))
            record.number("loss", float(loss.detach()))


def _collate(rows: Sequence[Tensors]) -> Tensors:
    return padded([row["input_ids"] for row in rows], "right")
