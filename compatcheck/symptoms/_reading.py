"""One line's measurements, and the names that trainers give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

NUMBER = r"[-+]?(?:nan|inf(?:inity)?|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)"
"""A number as logs print it; to be compiled without regard to letter case."""

_MIB_PER_GIB = 1024.0
_NAMES = {
    "loss": "loss",
    "train/loss": "loss",
    "train_loss": "loss",
    "training_loss": "loss",
    "lm loss": "loss",
    "lm_loss": "loss",
    "reduced_train_loss": "loss",
    "grad_norm": "grad_norm",
    "grad norm": "grad_norm",
    "train/grad_norm": "grad_norm",
    "train_grad_norm": "grad_norm",
    "global_grad_norm": "grad_norm",
    "eval_loss": "eval_loss",
    "eval/loss": "eval_loss",
    "val_loss": "eval_loss",
    "val/loss": "eval_loss",
    "validation_loss": "eval_loss",
    "learning_rate": "learning_rate",
    "train/learning_rate": "learning_rate",
    "learning rate": "learning_rate",
    "lr": "learning_rate",
    "epoch": "epoch",
    "train/epoch": "epoch",
    "step": "step",
    "global_step": "step",
    "iter": "step",
    "iteration": "step",
    "current_steps": "step",
    "global_step/max_steps": "step",
    "steps[global_step/max_steps]": "step",
    "loss scale": "loss_scale",
    "loss_scale": "loss_scale",
    "memory": "memory_mib",
}
_IN_GIB = frozenset(
    (
        "memory(gib)",
        "memory/max_active (gib)",
        "memory/max_mem_active(gib)",
        "memory/max_allocated (gib)",
        "memory/max_memory_allocated(gib)",
        "memory/max_mem_allocated(gib)",
        "peak_memory_active",
        "vram_allocated",
    )
)
_POLICY = ("reward", "kl", "advantage", "completion", "clip_ratio")
_NAMED_EVALUATION = re.compile(r"eval_.*_loss\Z")


class Reading(NamedTuple):
    """What a line of a log measures; memory in MiB.

    ``zero_is_normal``: a policy gradient's loss, which is zero by construction while the policy is the one sampled.
    ``skipped``: the step was not taken because a gradient overflowed. ``went_on``: steps were taken. ``told``: a person
    gives it in a sentence; no program logged it.
    """

    loss: float | None = None
    grad_norm: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    memory_mib: float | None = None
    loss_scale: float | None = None
    step: float | None = None
    epoch: float | None = None
    zero_is_normal: bool = False
    skipped: bool = False
    went_on: bool = False
    told: bool = False


def number(text: str) -> float | None:
    """The number that a text is; ``60/61`` is the first of the two."""
    try:
        return float(text.partition("/")[0])
    except ValueError:
        return None


def reading(pairs: Iterable[tuple[str, str]]) -> Reading | None:
    """The reading that named values make, or None where nothing of a run is among them.

    A summary of a whole run, which the Trainer prints at its end, is none.
    """
    values: dict[str, float] = {}
    policy = False
    for key, text in pairs:
        lowered = key.lower()
        name = _NAMES.get(lowered)
        if name is None:
            if lowered == "train_runtime":
                return None
            policy = policy or lowered.startswith(_POLICY)
            name = "memory_mib" if lowered in _IN_GIB else None
            if name is None and _NAMED_EVALUATION.match(lowered):
                name = "eval_loss"
            if name is None:
                continue
        value = number(text)
        if value is not None:
            values.setdefault(name, value * _MIB_PER_GIB if lowered in _IN_GIB else value)
    return made(values, policy)


def made(values: Mapping[str, float], policy: bool = False) -> Reading | None:
    if not values.keys() & {"loss", "grad_norm", "eval_loss"}:
        return None
    return Reading(**values, zero_is_normal=policy)  # type: ignore[arg-type]
