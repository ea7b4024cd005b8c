"""``log`` of its own without a second argument, which the Trainer hands over since 4.47.0.

https://github.com/huggingface/transformers/blob/v4.47.0/src/transformers/trainer.py
"""

from __future__ import annotations

from compatcheck.project.scripts._script import LOOPS, OwnTrainer, Script, takes_positional, undecorated

READS = "trainers"


def find(script: Script) -> int | None:
    return script.first(_line)


def _line(trainer: OwnTrainer) -> int | None:
    """What calls it as it trains may be the user's own too."""
    own = undecorated(trainer, "log")
    if own is None or takes_positional(own, 2) or (LOOPS | {"_maybe_log_save_evaluate"}) & set(trainer.methods):
        return None
    return own.lineno
