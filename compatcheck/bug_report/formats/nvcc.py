"""What `nvcc --version` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim

TITLE = "nvcc --version"
_RELEASE = re.compile(r"Cuda compilation tools, release (\d{1,2}\.\d)\b")


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if _RELEASE.search(line.text))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        release = _RELEASE.search(line.text)
        if release:
            yield Claim("cuda.toolkit", release[1], line.number)
