"""Generation calls the inherited ``_extract_past_from_model_output``, which transformers 4.49.0 no longer has.

https://github.com/zai-org/GLM-4/issues/715
"""

from __future__ import annotations

import ast

from compatcheck.facts.model_files.traits._code import Code, calls

TRAIT = "past-extracted-by-inherited-method"
KIND = "model"
_METHOD = "_extract_past_from_model_output"


def find(code: Code) -> int | None:
    """The line of such a call; a file that defines the method, asks whether it is there or tries it is let be."""
    if any(isinstance(each, ast.FunctionDef) and each.name == _METHOD for each in code.nodes):
        return None
    if any(isinstance(each, ast.Constant) and each.value == _METHOD for each in code.nodes):
        return None
    conditions = (each for each in code.nodes if isinstance(each, (ast.Try, ast.If)))
    let_be = {id(inner) for each in conditions for inner in ast.walk(each)}
    return min((each.lineno for each in calls(code.tree, _METHOD) if id(each) not in let_be), default=None)
