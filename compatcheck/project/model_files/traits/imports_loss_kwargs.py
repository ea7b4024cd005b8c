"""The code imports types of keyword arguments that transformers 4.54.0 replaced by ``TransformersKwargs``.

https://github.com/SafeAILab/EAGLE/issues/278
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-loss-kwargs"
KIND = "model"


def find(code: Code) -> int | None:
    of_utils = line_of_import(code, r"transformers\.utils(\.generic)?", ("LossKwargs",))
    of_models = line_of_import(code, r"transformers\.models\.(llama|qwen2)\.modeling_\w+", ("KwargsForCausalLM",))
    return of_utils or of_models
