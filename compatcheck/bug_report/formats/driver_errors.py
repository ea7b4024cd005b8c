"""What torch says of a driver that is older than its CUDA: the CUDA that the driver is for, as ``12080`` for 12.8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "torch's message on an old driver"
WITHIN_PROSE = True
_FOUND = LazyPattern(
    r"driver on your system is too old \(found version (\d{1,2})0(\d)\d\)",
    marks=("driver on your system is too old (found version ",),
)


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if _FOUND.search(line.text))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        if found := _FOUND.search(line.text):
            yield Claim("cuda.driver_api", f"{found[1]}.{found[2]}", line.number)
