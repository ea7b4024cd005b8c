"""The code imports helpers for masks from other models, whose files no longer have them in transformers 4.35.0.

https://github.com/VinAIResearch/PhoGPT/issues/3
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-mask-helpers"
KIND = "model"


def find(code: Code) -> int | None:
    models = r"transformers\.models\.(bloom|clip|opt)\.modeling_\w+"
    return line_of_import(code, models, ("_expand_mask", "_make_causal_mask"))
