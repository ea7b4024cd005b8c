"""The code calls ``get_usable_length()`` or reads ``seen_tokens`` of a cache: in transformers 4.36.0 to 4.53.3.

https://github.com/huggingface/transformers/blob/v4.54.0/src/transformers/cache_utils.py
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._cache import line_of_member
from compatcheck.project.model_files.traits._code import Code

KIND = "model"


def find(code: Code) -> int | None:
    return line_of_member(code, ("get_usable_length", "seen_tokens"))
