"""The head of what NCCL's own tests print: a line for each rank with its GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._gpus import gpu
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "the head of nccl-tests"
_RANK = LazyPattern(
    r"#?\s{0,8}Rank\s{1,6}\d{1,5}\s.{0,120}?\bon\s{1,8}\S{1,80}\s{1,4}device\s{1,4}\d{1,3}\s\[\w[\w:.]{1,20}\]\s{1,4}(\S.{2,60}?)\s{0,8}\Z",
    marks=("device",),
)


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if "device" in line.text and _RANK.match(line.text))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    gpus = [gpu(match[1]) for line in lines if (match := _RANK.match(line.text))]
    if gpus:
        yield Claim("gpus", gpus, lines[0].number)
