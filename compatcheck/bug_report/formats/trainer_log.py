"""What the Trainer of transformers and DeepSpeed log when training starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "the head of a training log"
_BATCH = LazyPattern(
    r"Instantaneous batch size per device = (\d{1,6})\s*\Z", marks=("instantaneous batch size per device = ",)
)
_STEPS = re.compile(r"Gradient Accumulation steps = (\d{1,6})\s*\Z")
_DEEPSPEED = re.compile(r"DeepSpeed info: version=(\d[\w.+]{1,40}),")


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(
        line
        for line in block.short()
        if ("=" in line.text and any(form.search(line.text) for form in (_BATCH, _STEPS, _DEEPSPEED)))
    )


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        batch, steps, deepspeed = (form.search(line.text) for form in (_BATCH, _STEPS, _DEEPSPEED))
        if batch:
            yield Claim("training.per_device_train_batch_size", int(batch[1]), line.number)
        elif steps:
            yield Claim("training.gradient_accumulation_steps", int(steps[1]), line.number)
        elif deepspeed:
            yield distribution_claim("deepspeed", deepspeed[1], line.number)
