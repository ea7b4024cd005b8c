"""The forward pass calls the inherited ``get_head_mask``, which transformers 5.0.0 no longer has.

https://github.com/huggingface/transformers/pull/41076
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._inherited import line_of_inherited

KIND = "model"


def find(code: Code) -> int | None:
    return line_of_inherited(code, "get_head_mask")
