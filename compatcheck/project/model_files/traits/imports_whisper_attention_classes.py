"""The code imports ``WHISPER_ATTENTION_CLASSES``, which transformers 4.53.0 no longer has.

https://github.com/sgl-project/sglang/pull/7612
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-whisper-attention-classes"
KIND = "model"


def find(code: Code) -> int | None:
    return line_of_import(code, r"transformers\.models\.whisper\.modeling_whisper", ("WHISPER_ATTENTION_CLASSES",))
