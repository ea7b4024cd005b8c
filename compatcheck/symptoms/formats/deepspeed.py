"""DeepSpeed's own lines: steps that its loss scaler skips, and how many of all steps it took.

``[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768`` and
``[Rank 0] step=10, skipped=6, lr=[1e-05], mom=[(0.9, 0.95)]``; in bf16, where nothing is scaled, from 0.19.3 on
``[deepspeed] OVERFLOW! Skipping step. Gradients are non-finite``
https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/runtime/fp16/loss_scaler.py
"""

from __future__ import annotations

import re

from compatcheck.symptoms._reading import Reading

MARKS = ("OVERFLOW! Rank", "OVERFLOW! Skipping", ", skipped=")
_NOT_SCALED = 1.0
_COUNTED = re.compile(r"\bstep=(\d+), skipped=(\d+)\b")
_SCALE = re.compile(r"Attempted loss scale: (\d+(?:\.\d+)?), (?:reducing to (\d+(?:\.\d+)?))?")


def read(text: str) -> Reading | None:
    counted = _COUNTED.search(text)
    if counted:
        return Reading(went_on=True) if int(counted[1]) > int(counted[2]) else None
    scale = _SCALE.search(text)
    if scale is None and "Gradients are non-finite" in text:
        return Reading(skipped=True, loss_scale=_NOT_SCALED)
    return Reading(skipped=True, loss_scale=float(scale[2] or scale[1]) if scale else None)
