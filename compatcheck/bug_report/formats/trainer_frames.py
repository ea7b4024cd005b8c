"""The frames of a traceback that belong to a framework's trainer: which framework trains, and for what.

A frame at the top of a module is of an import, which anything may do. The outermost framework counts: LLaMA-Factory
runs the trainers of TRL, these that of transformers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.packages.frameworks import foundations, frameworks

TITLE = "the frames of a trainer"
_FRAME = LazyPattern(r"\bFile \"([^\"\s]{1,400}\.py)\", line \d{1,6}, in [A-Za-z_]", marks=('", line ',))
_PATTERNS = {
    name: re.compile(rf"(?:\A|/)(?:{framework.frames})") for name, framework in frameworks().items() if framework.frames
}
_OBJECTIVES = {"pt": "pretrain", "rm": "reward"}
_KNOWN = ("sft", "dpo", "kto", "orpo", "cpo", "bco", "grpo", "ppo", "rloo", "gkd", "reward", "online_dpo")


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if _frame(line))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    """The outermost framework with its first line, and the objective where its frames name just one."""
    frames = [frame for line in lines if (frame := _frame(line))]
    below = {name for frame in frames for name in foundations(frame.framework)}
    outermost = next((frame for frame in frames if frame.framework not in below), None)
    if outermost is None:
        return
    yield Claim("training.framework", outermost.framework, outermost.line)
    objectives = {
        frame.objective: frame.line
        for frame in frames[::-1]
        if frame.framework == outermost.framework and frame.objective
    }
    if len(objectives) == 1:
        objective, number = next(iter(objectives.items()))
        yield Claim("training.objective", objective, number)


class _Frame(NamedTuple):
    framework: str
    objective: str | None
    line: int


def _frame(line: Line) -> _Frame | None:
    """The framework whose trainer a frame belongs to, and the objective that its path names."""
    frame = _FRAME.search(line.text)
    path = frame[1].replace("\\", "/") if frame else ""
    for name, pattern in _PATTERNS.items() if frame else ():
        if match := pattern.search(path):
            word = (match[1] or "").lower() if pattern.groups else ""
            objective = _OBJECTIVES.get(word, word)
            known = objective in _KNOWN or objective == "pretrain"
            return _Frame(name, objective if known else None, line.number)
    return None
