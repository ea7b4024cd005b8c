"""TrainingArguments are given ``evaluation_strategy``, which is ``eval_strategy`` since 4.41 and gone since 4.51.

https://github.com/huggingface/transformers/blob/v4.50.3/src/transformers/training_args.py
"""

from __future__ import annotations

from compatcheck.project.scripts._script import ARGUMENTS, TRL_CONFIGS, Script

READS = "calls"
CLASSES, KEYWORDS = (*ARGUMENTS, *TRL_CONFIGS), frozenset(("evaluation_strategy",))


def find(script: Script) -> int | None:
    return script.keyword_line(CLASSES, KEYWORDS)
