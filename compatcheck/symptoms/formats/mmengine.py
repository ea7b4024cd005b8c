"""mmengine's lines, which XTuner prints: ``Iter(train) [  10/3000]  lr: 2.0e-05  ...  memory: 12345  loss: 1.8250``.

https://github.com/open-mmlab/mmengine/blob/main/mmengine/runner/log_processor.py
"""

from __future__ import annotations

import re

from compatcheck.symptoms._reading import NUMBER, Reading, reading

MARKS = ("(train)", "(val)")
_HEAD = re.compile(r"(Iter|Epoch)\((train|val)\)\s*(?:\[\s*(\d+)\])?\s*\[\s*(\d+)/\s*(\d+)\]")
_PAIR = re.compile(rf"([\w/.]+): ({NUMBER})\b", re.IGNORECASE)


def read(text: str) -> Reading | None:
    head = _HEAD.search(text)
    if head is None:
        return None
    kind, mode, epoch, iteration, length = head.groups()
    pairs = [(key, value) for key, value in _PAIR.findall(text[head.end() :]) if key not in ("epoch", "iter")]
    if mode == "val":
        pairs = [("eval_loss", value) for key, value in pairs if key in ("loss", "val/loss")]
    elif kind == "Epoch" and epoch:
        pairs.append(("step", str((int(epoch) - 1) * int(length) + int(iteration))))
    else:
        pairs.append(("step", iteration))
    return reading(pairs)
