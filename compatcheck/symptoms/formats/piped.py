"""Lines of ``key: value`` between bars: Megatron-LM's and NeMo's.

``iteration 10/ 100 | ... | lm loss: 1.08E+01 | loss scale: 1.0 | grad norm: 3.2 |`` and
``Training epoch 0, iteration 1/99 | lr: 1e-05 | global_step: 1 | reduced_train_loss: 11.03 | ...``
https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py
"""

from __future__ import annotations

import re

from compatcheck.symptoms._reading import Reading, reading

MARKS = ("lm loss:", "reduced_train_loss:", "lm loss SFT:", "grad norm:")
_ITERATION = re.compile(r"\biteration\s+(\d+)/")
_PAIR = re.compile(r"\A(.*?)\s*:\s*(\S+)\s*\Z")


def read(text: str) -> Reading | None:
    if "|" not in text:
        return None
    parts = [part.strip() for part in text.split("|")]
    pairs = [(match[1].strip(), match[2]) for part in parts if (match := _PAIR.match(part))]
    iteration = _ITERATION.search(text)
    return reading([*pairs, *([("step", iteration[1])] if iteration else [])])
