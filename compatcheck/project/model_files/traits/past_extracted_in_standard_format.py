"""Generation passes ``standardize_cache_format`` to a method that transformers 4.44.0 and later give no such parameter.

https://github.com/zai-org/GLM-4/issues/459
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls
from compatcheck.project.model_files.traits import past_extracted_by_inherited_method
from compatcheck.project.model_files.traits._code import Code

KIND = "model"


def find(code: Code) -> int | None:
    if past_extracted_by_inherited_method.find(code) is None:
        return None
    passing = (each for each in calls(code.tree, "_extract_past_from_model_output") if _passes(each))
    return min((each.lineno for each in passing), default=None)


def _passes(call: ast.Call) -> bool:
    return any(keyword.arg == "standardize_cache_format" for keyword in call.keywords)
