"""Masks are asked for with ``inputs_embeds``, which transformers before 5.2.0 calls otherwise.

https://github.com/huggingface/transformers/blob/v5.2.0/src/transformers/masking_utils.py
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._masks import line_of_mask_argument

KIND = "model"


def find(code: Code) -> int | None:
    return line_of_mask_argument(code, ("inputs_embeds",))
