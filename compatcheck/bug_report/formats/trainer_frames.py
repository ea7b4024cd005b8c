"""The frames of a traceback that belong to a framework's trainer: which framework trains, and for what.

A frame at the top of a module is of an import, which anything may do. The outermost framework counts: LLaMA-Factory
runs the trainers of TRL, these that of transformers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim

TITLE = "the frames of a trainer"
_FRAME = re.compile(r"\bFile \"([^\"\s]{1,400}\.py)\", line \d{1,6}, in [A-Za-z_]")
_TRAINERS = (
    ("llama-factory", r"(?:llamafactory|llmtuner)/train/(?:(\w{2,4})/)?"),
    ("ms-swift", r"swift/(?:llm/(?:train/|sft\.|rlhf\.)|trainers/|rlhf_trainers/|pipelines/train/)"),
    ("axolotl", r"axolotl/(?:train\.|core/|cli/train\.)"),
    ("xtuner", r"xtuner/(?:tools/train\.|engine/|v1/train/)"),
    ("torchtune", r"torchtune/_cli/run\.|recipes/(?:full|lora|qat)_finetune_"),
    ("verl", r"verl/(?:trainer|workers)/"),
    ("openrlhf", r"openrlhf/(?:trainer|cli/train_)"),
    ("lightning", r"(?:pytorch_lightning|lightning/pytorch)/trainer/"),
    ("setfit", r"setfit/trainer\w{0,20}\."),
    ("sentence-transformers", r"sentence_transformers/(?:\w{1,20}/)?trainer\."),
    ("lm-eval", r"lm_eval/(?:__main__|evaluator)\."),
    ("trl", r"(?:trl/(?:experimental/\w{1,20}|trainer)/|unsloth_compiled_cache/Unsloth)(\w{2,14}?)_?[tT]rainer\."),
    ("transformers", r"transformers/trainer\w{0,8}\."),
)
"""Outermost first; the group is what the framework calls the objective."""
_PATTERNS = tuple((name, re.compile(rf"(?:\A|/){pattern}")) for name, pattern in _TRAINERS)
_OBJECTIVES = {"pt": "pretrain", "rm": "reward"}
_KNOWN = ("sft", "dpo", "kto", "orpo", "cpo", "bco", "grpo", "ppo", "rloo", "gkd", "reward", "online_dpo")


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if _framework(line))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    """The outermost framework with its first line, and the objective where its frames name just one."""
    found = [(*told, line.number) for line in lines if (told := _framework(line))]
    if not found:
        return
    outermost = min(place for place, _, _ in found)
    name = _PATTERNS[outermost][0]
    yield Claim("training.framework", name, next(number for place, _, number in found if place == outermost))
    named = {objective: number for place, objective, number in found[::-1] if place == outermost and objective}
    if len(named) == 1:
        objective, number = next(iter(named.items()))
        yield Claim("training.objective", objective, number)


def _framework(line: Line) -> tuple[int, str | None] | None:
    """The place of the framework in the list, and the objective that the path names."""
    frame = _FRAME.search(line.text)
    path = frame[1].replace("\\", "/") if frame else ""
    for place, (_, pattern) in enumerate(_PATTERNS) if frame else ():
        if match := pattern.search(path):
            word = (match[1] or "").lower() if pattern.groups else ""
            objective = _OBJECTIVES.get(word, word)
            return place, objective if objective in _KNOWN or objective == "pretrain" else None
    return None
