"""``training_step`` of its own without a third argument, which the Trainer hands over since 4.46.0.

https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/trainer.py
"""

from __future__ import annotations

from compatcheck.project.scripts._script import LOOPS, OwnTrainer, Script, takes_positional, undecorated

READS = "trainers"


def find(script: Script) -> int | None:
    return script.first(_line)


def _line(trainer: OwnTrainer) -> int | None:
    """A loop that is the user's own may call it as it likes."""
    own = undecorated(trainer, "training_step")
    if own is None or takes_positional(own, 3) or LOOPS & set(trainer.methods):
        return None
    return own.lineno
