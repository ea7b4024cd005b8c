"""The forward pass calls the inherited ``get_extended_attention_mask``, which transformers 5.17.0 no longer has.

https://github.com/aaronsb/knowledge-graph-system/issues/565
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._inherited import line_of_inherited

KIND = "model"


def find(code: Code) -> int | None:
    return line_of_inherited(code, "get_extended_attention_mask")
