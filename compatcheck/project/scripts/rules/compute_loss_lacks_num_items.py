"""``compute_loss`` of its own without ``num_items_in_batch``, which the Trainer hands over since 4.46.0.

https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/trainer.py
"""

from __future__ import annotations

from compatcheck.files.python_syntax import parameters
from compatcheck.project.scripts._script import OwnTrainer, Script, calls_inherited, undecorated

READS = "trainers"


def find(script: Script) -> int | None:
    return script.first(_line)


def _line(trainer: OwnTrainer) -> int | None:
    """A ``training_step`` that is the user's own too may call it as it likes, unless it goes on to the Trainer's."""
    own, step = undecorated(trainer, "compute_loss"), trainer.methods.get("training_step")
    if own is None or own.args.kwarg is not None or "num_items_in_batch" in parameters(own):
        return None
    return own.lineno if step is None or calls_inherited(step) else None
