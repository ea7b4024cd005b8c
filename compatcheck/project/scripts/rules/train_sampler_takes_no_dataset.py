"""``_get_train_sampler`` of its own without an argument, to which the Trainer hands the dataset since 4.52.0.

https://github.com/huggingface/transformers/blob/v4.52.1/src/transformers/trainer.py
"""

from __future__ import annotations

from compatcheck.project.scripts._script import OwnTrainer, Script, takes_positional, undecorated

READS = "trainers"


def find(script: Script) -> int | None:
    return script.first(_line)


def _line(trainer: OwnTrainer) -> int | None:
    """What makes the loader may be the user's own too."""
    own = undecorated(trainer, "_get_train_sampler")
    made = {"get_train_dataloader", "_get_dataloader"} & set(trainer.methods)
    return own.lineno if own and not takes_positional(own, 1) and not made else None
