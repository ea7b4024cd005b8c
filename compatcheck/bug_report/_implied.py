"""The framework that a report means by stating the version of its package, where nothing else names one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.bug_report._claims import WORDS, Claim
from compatcheck.packages.frameworks import framework_of_distribution
from compatcheck.results.cases import FACTUAL

_PATH = "training.framework"
_OF_TRAINING = (
    *("training.method", "training.objective", "training.learning_rate", "training.deepspeed", "training.fsdp"),
    *(
        "training.per_device_train_batch_size",
        "training.gradient_accumulation_steps",
        "training.gradient_checkpointing",
    ),
)
"""What only a training has: a report on chat or on loading a model is about another part of the program."""


def framework_claims(claims: Sequence[Claim]) -> Iterator[Claim]:
    """The one program whose package a report on a training states; libraries that others train with are none."""
    stated = [claim for claim in claims if not claim.doubt and claim.how in FACTUAL]
    trains = any(claim.path.startswith(_OF_TRAINING) for claim in stated)
    if not trains or any(claim.path == _PATH for claim in claims):
        return
    found: dict[str, Claim] = {}
    for claim in stated:
        if claim.path.startswith("distributions.") and claim.value:
            framework = framework_of_distribution(claim.path.partition(".")[2])
            if framework and framework.program and framework.reader:
                found.setdefault(framework.name, claim)
    if len(found) == 1:
        name, claim = next(iter(found.items()))
        yield Claim(_PATH, name, claim.line, weight=WORDS)
