"""A rotary embedding looks up the kind "default" in ``ROPE_INIT_FUNCTIONS``, where transformers 5.0.0 has it no longer.

https://github.com/KRLabsOrg/LettuceDetect/issues/33
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import Function, calls, inside, last_name, methods
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "model"
_TABLE = "ROPE_INIT_FUNCTIONS"
_ADDS = ("get", "setdefault", "update")


def find(code: Code) -> int | None:
    """The line in a constructor that names the kind.

    A file that has a table of its own, puts the kind in, asks for it or computes it is let be, and so is code whose
    configuration names another kind.
    """
    if code.scales_rope or any(_is_own(each) for each in code.nodes):
        return None
    if any(isinstance(each, ast.FunctionDef) and "default_rope" in each.name for each in code.nodes):
        return None
    if any(isinstance(each, ast.Subscript) and not _is_read(each) and _is_table(each.value) for each in code.nodes):
        return None
    asked = (call.func for name in _ADDS for call in calls(code.tree, name))
    if any(_is_table(each.value) for each in asked if isinstance(each, ast.Attribute)):
        return None
    constructors = (methods(node).get("__init__") for node in classes(code))
    lines = [line for each in constructors if each is not None for line in _lines(each)]
    return min(lines, default=None)


def _lines(constructor: Function) -> list[int]:
    if not any(isinstance(each, ast.Constant) and each.value == "default" for each in ast.walk(constructor)):
        return []
    let_be = inside(each for each in ast.walk(constructor) if isinstance(each, (ast.If, ast.IfExp, ast.Try)))
    read = (each for each in ast.walk(constructor) if isinstance(each, ast.Subscript) and id(each) not in let_be)
    return [each.lineno for each in read if _is_table(each.value)]


def _is_own(node: ast.AST) -> bool:
    """Whether the name is given to something in this file, or comes from beside it."""
    if isinstance(node, ast.ImportFrom) and (node.level or not (node.module or "").startswith("transformers")):
        return any(_TABLE in (each.name, each.asname) for each in node.names)
    return isinstance(node, ast.Name) and node.id == _TABLE and isinstance(node.ctx, ast.Store)


def _is_read(node: ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_table(node: ast.expr) -> bool:
    return last_name(node) == _TABLE
