"""What `nvcc --version` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "nvcc --version"
_RELEASE = LazyPattern(r"Cuda compilation tools, release (\d{1,2}\.\d)\b", marks=("cuda compilation tools, release ",))


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if _RELEASE.search(line.text))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        release = _RELEASE.search(line.text)
        if release:
            yield Claim("cuda.toolkit", release[1], line.number)
