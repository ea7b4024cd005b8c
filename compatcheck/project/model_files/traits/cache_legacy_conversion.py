"""The code turns a cache into tuples or back, by methods that transformers 5.0.0 no longer has.

https://github.com/huggingface/transformers/blob/v5.0.0/src/transformers/cache_utils.py
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._cache import line_of_member
from compatcheck.project.model_files.traits._code import Code

KIND = "model"


def find(code: Code) -> int | None:
    return line_of_member(code, ("to_legacy_cache", "from_legacy_cache"))
