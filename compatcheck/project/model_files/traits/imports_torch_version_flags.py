"""The code imports flags of torch's version that transformers 4.48.0 and 4.48.1 lack.

https://github.com/NVlabs/hymba/issues/4
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-torch-version-flags"
KIND = "model"
_NAMES = ("is_torch_greater_or_equal_than_1_13", "is_torch_greater_or_equal_than_2_0")


def find(code: Code) -> int | None:
    return line_of_import(code, r"transformers\.pytorch_utils", _NAMES)
