"""What `conda list` prints: names, versions, builds and channels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim, version_claim
from compatcheck.bug_report._names import distribution
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "conda list"
_BUILD = r"(?:pypi_\d+|<pip>|py[\w.]*_?\w*|h[0-9a-f]{5,8}_\d+|\w{0,60}_\d+|\d{1,3})"
_ROW = re.compile(
    rf"\s*([a-z0-9_][\w.-]{{0,60}})\s+(\d[\w.+!]{{0,60}})\s+({_BUILD})(?:\s+([\w./:-]{{1,80}}))?\s*\Z", re.I
)
_HEADER = LazyPattern(
    r"\s*# (?:packages in environment at|Name\s+Version\s+Build)",
    marks=(
        "packages in environment at",
        "version",
    ),
)
_PYTHON_BUILD = re.compile(r"py(?:hd?|thon|\d)|cuda|cu\d", re.I)
_CUDA_BUILD = re.compile(r"cuda(\d{1,2}\.\d)")
_NAMED_OTHERWISE = {"pytorch": "torch", "pytorch-gpu": "torch", "protobuf": "protobuf", "triton": "triton"}


def recognises(block: Block) -> tuple[Line, ...]:
    """The rows, where there are several or the head of the table is there."""
    lines = list(block.short())
    rows = tuple(line for line in lines if _ROW.match(line.text))
    return rows if len(rows) > 1 or any(_HEADER.match(line.text) for line in lines) else ()


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        yield from row_claims(line)


def row_claims(line: Line) -> Iterator[Claim]:
    """The claims of one row: libraries that are no distributions of Python's are left out."""
    match = _ROW.match(line.text)
    if match is None:
        return
    name, version, build, channel = match[1].lower(), match[2], match[3], match[4] or ""
    if name == "python":
        yield Claim("python", version, line.number)
    elif name == "pytorch-cuda":
        yield version_claim("cuda.runtime", version, line.number)
    elif build.startswith(("pypi", "<pip>")) or channel == "pypi":
        yield distribution_claim(name, version, line.number)
    elif name in _NAMED_OTHERWISE or distribution(name) or _PYTHON_BUILD.search(build):
        yield distribution_claim(_NAMED_OTHERWISE.get(name, name), version, line.number)
        cuda = _CUDA_BUILD.search(build)
        if name == "pytorch" and cuda:
            yield Claim("cuda.runtime", cuda[1], line.number)
        elif name == "pytorch" and "cpu" in build:
            yield Claim("cuda.runtime", None, line.number)
