"""The Trainer is given ``tokenizer``, which is ``processing_class`` since 4.46 and gone since 5.0.0.

https://github.com/huggingface/transformers/blob/v4.57.6/src/transformers/trainer.py
"""

from __future__ import annotations

from compatcheck.project.scripts._script import TRAINERS, Script

READS = "calls"
CLASSES, KEYWORDS = TRAINERS, frozenset(("tokenizer",))


def find(script: Script) -> int | None:
    return script.keyword_line(CLASSES, KEYWORDS)
