"""A method that a model's own code inherits from transformers and calls."""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls, inside
from compatcheck.project.model_files.traits._code import Code


def line_of_inherited(code: Code, method: str) -> int | None:
    """The line of a call to it; a file that defines the method, asks whether it is there or tries it is let be."""
    if any(isinstance(each, ast.FunctionDef) and each.name == method for each in code.nodes):
        return None
    if any(isinstance(each, ast.Constant) and each.value == method for each in code.nodes):
        return None
    let_be = inside(each for each in code.nodes if isinstance(each, (ast.Try, ast.If)))
    return min((each.lineno for each in calls(code.tree, method) if id(each) not in let_be), default=None)
