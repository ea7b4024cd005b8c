"""The code calls ``get_max_length()`` of a cache, which transformers 4.49.0 dropped and a 5.x release brought back.

https://github.com/deepseek-ai/DeepSeek-Coder-V2/issues/81
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._cache import line_of_member
from compatcheck.project.model_files.traits._code import Code

KIND = "model"


def find(code: Code) -> int | None:
    return line_of_member(code, ("get_max_length",))
