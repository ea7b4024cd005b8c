"""Streaming code calls helpers of ``generate()`` itself, with a configuration that ``generate()`` has not prepared.

From 4.43.0 on the helpers read token ids that only the preparation sets, and 4.42.0 asks one of them for a device:
https://github.com/zai-org/ChatGLM3/issues/1299
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import inside
from compatcheck.project.model_files.traits._code import Code

KIND = "model"
_CALLED = ("_get_logits_processor", "_get_stopping_criteria")
_HELPERS = (*_CALLED, "_get_logits_warper")


def find(code: Code) -> int | None:
    """The line of such a call; a file that prepares special tokens or defines a helper is let be."""
    if any(isinstance(each, ast.Attribute) and each.attr == "_prepare_special_tokens" for each in code.nodes):
        return None
    if any(isinstance(each, ast.FunctionDef) and each.name in _HELPERS for each in code.nodes):
        return None
    let_be = inside(each for each in code.nodes if isinstance(each, ast.Try))
    called = (each for each in code.nodes if isinstance(each, ast.Call) and id(each) not in let_be)
    return min((each.lineno for each in called if _is_helper(each)), default=None)


def _is_helper(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in _CALLED
