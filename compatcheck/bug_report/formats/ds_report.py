"""What DeepSpeed's `ds_report` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim, version_claim

TITLE = "ds_report"
_ENTRY = re.compile(r"\s*([a-z][\w ()/.]{3,40}?) ?\.{3,60}\s*(\S.*)\Z")
_KEYS = {
    "torch version": "distributions.torch",
    "deepspeed info": "distributions.deepspeed",
    "torch cuda version": "cuda.runtime",
    "torch hip version": "torch_build.hip",
    "nvcc version": "cuda.toolkit",
}


def recognises(block: Block) -> tuple[Line, ...]:
    lines = tuple(line for line in block.short() if _ENTRY.match(line.text))
    return lines if any(_key(line) for line in lines) else ()


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        entry = _ENTRY.match(line.text)
        if entry is None or entry[1] not in _KEYS:
            continue
        path, value = _KEYS[entry[1]], entry[2].split(",")[0].strip()
        if value == "None":
            if path == "cuda.runtime":
                yield Claim(path, None, line.number)
        elif value[:1].isdigit() and path.startswith("distributions."):
            yield distribution_claim(path.partition(".")[2], value, line.number)
        elif value[:1].isdigit():
            yield version_claim(path, value, line.number)


def _key(line: Line) -> str | None:
    entry = _ENTRY.match(line.text)
    return _KEYS.get(entry[1]) if entry else None
