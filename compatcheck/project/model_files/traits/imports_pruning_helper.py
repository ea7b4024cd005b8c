"""The code imports ``find_pruneable_heads_and_indices``, which transformers 5.0.0 no longer has.

https://github.com/zai-org/ImageReward/issues/122
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-pruning-helper"
KIND = "model"


def find(code: Code) -> int | None:
    return line_of_import(code, r"transformers\.(pytorch_utils|modeling_utils)", ("find_pruneable_heads_and_indices",))
