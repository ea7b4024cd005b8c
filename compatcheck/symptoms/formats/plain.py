"""What people's own loops print: ``step 10 loss 0.5``, ``[iter 3] loss=nan``, ``Batch 0/99 | Train Loss nan``.

A line counts only with a counter of steps, batches or epochs on it: the word loss alone stands in too many sentences.
"""

from __future__ import annotations

import re

from compatcheck.symptoms._reading import NUMBER, Reading, made

MARKS = ("loss", "Loss", "LOSS")
FALLBACK = True
_LOSS = re.compile(
    r"(?<![\w/])(?:(eval|val|valid|validation|test)|(?:train(?:ing)?))?[ _/]{0,3}loss(?:_avg)?"
    rf"\s{{0,4}}(?:is|[:=|])?\s{{0,4}}({NUMBER})(?![\w.])",
    re.IGNORECASE,
)
_GRADIENT = re.compile(rf"\bgrad(?:ient)?[ _-]?norm\s*[:=]?\s*({NUMBER})(?![\w.])", re.IGNORECASE)
_RATE = re.compile(rf"\b(?:lr|learning[ _]rate)\s*[:=]?\s*({NUMBER})(?![\w.])", re.IGNORECASE)
_STEP = re.compile(r"\b(?:global[ _]?)?(?:step|steps|iter|iteration|batch|it)\b\s*[:=#\[]?\s*(\d+)\b", re.IGNORECASE)
_BAR = re.compile(r"\|\s*(\d+)/\d+ \[")
_SENTENCE = re.compile(
    r"\b(?:the|is|was|becomes?|became|then|and|but|from|after|before|when|with|while|until|i|my|we|it|goes|went|keeps?)\b"
    r"|(?-i:[\u4e00-\u9fff]{2})",
    re.IGNORECASE,
)
_LEAST_SENTENCE = 3
"""So many words of a sentence make one; a program prints fewer between its numbers."""
_EPOCH = re.compile(r"\bepoch\s*[:=#\[]?\s*(\d+(?:\.\d+)?)", re.IGNORECASE)


def read(text: str) -> Reading | None:
    loss = _LOSS.search(text)
    if loss is None:
        return None
    step, epoch = _STEP.search(text) or _BAR.search(text), _EPOCH.search(text)
    if not (step or epoch):
        return None
    values = {"eval_loss" if loss[1] else "loss": float(loss[2])}
    for name, found in (("grad_norm", _GRADIENT.search(text)), ("learning_rate", _RATE.search(text))):
        if found:
            values[name] = float(found[1])
    if step:
        values["step"] = float(step[1])
    if epoch:
        values["epoch"] = float(epoch[1])
    reading = made(values)
    return reading and reading._replace(told=len(_SENTENCE.findall(text)) >= _LEAST_SENTENCE)
