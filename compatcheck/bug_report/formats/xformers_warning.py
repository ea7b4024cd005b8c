"""What xFormers prints where its binary does not fit: what it was built for, and what is there instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim

TITLE = "xFormers' warning"
_BUILT = re.compile(r"(PyTorch|Python)\s+\S{1,40}(?: with CUDA \S{1,20})? \(you have (\d[\w.+]{0,40})\)")


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if _BUILT.search(line.text))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        for subject, version in _BUILT.findall(line.text):
            if subject == "Python":
                yield Claim("python", version, line.number)
            else:
                yield distribution_claim("torch", version, line.number)
