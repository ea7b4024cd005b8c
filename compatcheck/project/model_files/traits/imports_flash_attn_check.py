"""The code imports ``is_flash_attn_available``, which transformers 4.35.0 lacks, and 4.39.0 and later.

https://github.com/huggingface/transformers/issues/27319
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-flash-attn-check"
KIND = "model"


def find(code: Code) -> int | None:
    return line_of_import(code, r"transformers\.utils", ("is_flash_attn_available",))
