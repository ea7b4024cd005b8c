"""Masks are asked for with ``input_embeds`` or ``cache_position``, which transformers 5.9.0 and later do not take.

https://github.com/ServiceNow/Fast-LLM/pull/524
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._masks import line_of_mask_argument

KIND = "model"


def find(code: Code) -> int | None:
    return line_of_mask_argument(code, ("input_embeds", "cache_position"))
