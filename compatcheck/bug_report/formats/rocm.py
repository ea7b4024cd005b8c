"""AMD machines: what rocminfo and rocm-smi print, the GPU that collect_env names, and paths of ROCm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, version_claim
from compatcheck.bug_report._gpus import gpu
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "rocminfo, rocm-smi and paths of ROCm"
WITHIN_PROSE = True
_AGENT = LazyPattern(r"\s*(?:Agent \d|\*\*\*\*\*\*\*)", marks=("agent ", "*******"))
_TARGET = LazyPattern(r"\s*Name:\s+(gfx[0-9a-f]{3,5})\b", marks=("gfx",))
_MARKETING = LazyPattern(r"\s*Marketing Name:\s+((?:AMD|Radeon|Instinct)\b.{1,60}?)\s*\Z", marks=("marketing name",))
_SMI = LazyPattern(
    r"\s*(?:GPU\[(\d{1,2})\]\s*:\s*)(?:Card [Ss]eries|Card [Mm]odel|GFX Version|Device Name):\s*(\S.{1,60}?)\s*\Z",
    marks=("gpu[",),
)
_CONFIGURED = LazyPattern(
    r"\s*GPU models and configuration\s*:\s*((?:AMD|Radeon)\b.{0,60}?)\s*\((gfx[0-9a-f]{3,5})[^)]{0,40}\)\s*\Z",
    marks=("gpu models and configuration",),
)
_PATH = LazyPattern(r"/opt/rocm-(\d\.\d{1,2}(?:\.\d{1,2})?)(?![\d.]*\d)", marks=("/opt/rocm-",))
_TARGET_ALONE = re.compile(r"gfx[0-9a-f]{3,5}\Z")
_PATTERNS = (_AGENT, _TARGET, _MARKETING, _SMI, _CONFIGURED)


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(
        line
        for line in block.short()
        if any(pattern.match(line.text) for pattern in _PATTERNS) or _PATH.search(line.text)
    )


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    gpus: dict[str, dict[str, Any]] = {}
    agent, first = 0, 0
    for line in lines:
        agent += _AGENT.match(line.text) is not None
        for key, facts in _stated(line, str(agent)):
            first = first or line.number
            gpus[key] = {**gpus.get(key, {}), **facts}
        if path := _PATH.search(line.text):
            yield version_claim("rocm.version", path[1], line.number)
    found = [{"compute_capability": None, **each} for key, each in gpus.items() if "gfx" in each or not key.isdigit()]
    if found:
        yield Claim("gpus", found, first)


def _stated(line: Line, agent: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a line says of one GPU, with the mark that keeps GPUs apart: an agent's, or the number of rocm-smi."""
    if (configured := _CONFIGURED.match(line.text)) is not None:
        yield "configured", {**gpu(configured[1]), "gfx": configured[2]}
    elif (target := _TARGET.match(line.text)) is not None:
        yield agent, {"gfx": target[1]}
    elif (name := _MARKETING.match(line.text)) is not None:
        yield agent, gpu(name[1])
    elif (card := _SMI.match(line.text)) is not None:
        yield f"smi{card[1]}", {"gfx": card[2]} if _TARGET_ALONE.match(card[2]) else gpu(card[2])
