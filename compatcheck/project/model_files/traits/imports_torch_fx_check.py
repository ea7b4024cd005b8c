"""The code imports ``is_torch_fx_available``, which transformers 5.0.0 no longer has.

https://github.com/huggingface/transformers/pull/44615
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-torch-fx-check"
KIND = "model"


def find(code: Code) -> int | None:
    return line_of_import(code, r"transformers\.(utils|utils\.import_utils|file_utils)", ("is_torch_fx_available",))
