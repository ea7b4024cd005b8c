"""The switch for gradient checkpointing is overridden by one that turns nothing on.

The call succeeds, the flag stays False and every activation is kept: https://github.com/zai-org/ChatGLM3/issues/1057
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import Function, methods
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "model"
_ENABLE = "gradient_checkpointing_enable"
_SETTER = "_set_gradient_checkpointing"


def find(code: Code) -> int | None:
    for node in classes(code):
        own = methods(node)
        if _ENABLE in own and _SETTER not in own and not _turns_on(own[_ENABLE]):
            return own[_ENABLE].lineno
    return None


def _turns_on(method: Function) -> bool:
    return any(_acts_on_checkpointing(node) for statement in method.body for node in ast.walk(statement))


def _acts_on_checkpointing(node: ast.AST) -> bool:
    """An assignment to an attribute named for checkpointing, or a call or mention of what could make one."""
    if isinstance(node, ast.Attribute):
        if isinstance(node.ctx, ast.Store):
            return "checkpoint" in node.attr
        return node.attr in (_ENABLE, _SETTER, "apply")
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr"
