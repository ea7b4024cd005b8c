"""Ascend machines: what `npu-smi info` prints, and where the release of CANN shows in files, paths and packages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, version_claim
from compatcheck.bug_report._gpus import CANN_RELEASE, gpu
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "npu-smi and CANN's version.cfg"
WITHIN_PROSE = True
_HEAD = LazyPattern(
    r"\|?\s{0,4}npu-smi\s+v?\d[\w.]{1,20}\s.{0,40}?Version:\s{0,8}v?(\d{2}\.\d(?:\.\w{1,8}){0,3})", marks=("version:",)
)
_ROW = LazyPattern(
    r"\s{0,4}\|\s{0,6}(\d{1,3})\s{1,8}((?:Ascend ?)?(?:910|310)\w{0,6})\s{1,24}\|\s{0,4}(?:OK|Warning|Alarm)",
    re.I,
    marks=(
        "910",
        "310",
    ),
)
_MEMORY = re.compile(r"/\s{0,8}(\d{4,6})\s{0,20}\|\s{0,4}\Z")
_PACKAGE = LazyPattern(rf"cann-(?:toolkit|nnae|kernels)\S{{0,20}}?[_-]{CANN_RELEASE}", re.I, marks=("cann-",))
_PATH = LazyPattern(rf"[/\\]Ascend[/\\]ascend-toolkit[/\\]{CANN_RELEASE}[/\\]", re.I, marks=("ascend-toolkit",))
_OWNER = LazyPattern(
    r"package_name\s?=\s?Ascend-cann|toolkit_(?:running|installed)_version\s?=|\ACANN\s?:?\Z",
    re.I,
    marks=(
        "package_name",
        "toolkit_",
        "cann",
    ),
)
_VERSION = LazyPattern(
    rf"(?:version|toolkit_(?:running|installed)_version)\s?=\s?\[?(?:\d\.\d{{1,3}}[\w.]{{0,20}}:)?(?:CANN-)?{CANN_RELEASE}",
    re.I,
    marks=(
        "version",
        "toolkit_",
    ),
)


def recognises(block: Block) -> tuple[Line, ...]:
    lines = list(block.short())
    owned = any(_OWNER.match(line.plain) for line in lines)
    return tuple(
        line
        for line in lines
        if _HEAD.match(line.text)
        or _ROW.match(line.text)
        or (line.text.endswith("|") and _MEMORY.search(line.text))
        or "scend" in line.text
        and (_PACKAGE.search(line.text) or _PATH.search(line.text))
        or (owned and _VERSION.match(line.plain))
    )


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    npus: dict[str, dict[str, object]] = {}
    first, last = 0, None
    for line in lines:
        head, row = _HEAD.match(line.text), _ROW.match(line.text)
        if head:
            yield Claim("npu.driver", head[1].lower(), line.number)
        elif row:
            last, first = row[1], first or line.number
            npus[last] = gpu(row[2])
        elif last is not None and (memory := _MEMORY.search(line.text)) and "memory_mib" not in npus[last]:
            npus[last]["memory_mib"] = int(memory[1])
        else:
            yield from _cann(line)
    if npus:
        yield Claim("gpus", list(npus.values()), first)


def _cann(line: Line) -> Iterator[Claim]:
    for found in (_PACKAGE.search(line.text), _PATH.search(line.text), _VERSION.match(line.plain)):
        if found:
            yield version_claim("npu.cann", found[1].lower(), line.number)
