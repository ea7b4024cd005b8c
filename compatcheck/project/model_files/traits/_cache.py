"""Calls on a key-value cache, told from others by the name of what they are made on."""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import last_name
from compatcheck.project.model_files.traits._code import Code


def line_of_member(code: Code, members: tuple[str, ...]) -> int | None:
    """The line that first uses one of these members of a cache, unless the file asks whether there is one.

    A file that tests with ``hasattr`` or ``getattr``, or that defines a cache of its own with the member, is let be;
    so is a use that is tried, made for some releases only, or made of a static or hybrid cache, which is not the kind
    that is used by default.
    """
    asked = {each.value for each in code.nodes if isinstance(each, ast.Constant)}
    defined = {each.name for each in code.nodes if isinstance(each, ast.FunctionDef)}
    wanted = [member for member in members if member not in asked and member not in defined]
    let_be = {id(each) for node in code.nodes if _is_conditional(node) for each in ast.walk(node)}
    lines = [
        each.lineno
        for each in code.nodes
        if isinstance(each, ast.Attribute) and each.attr in wanted and id(each) not in let_be and _is_cache(each.value)
    ]
    return min(lines, default=None)


def _is_cache(node: ast.expr) -> bool:
    name = last_name(node) or ""
    return name.startswith("past") or "cache" in name.lower()


def _is_conditional(node: ast.AST) -> bool:
    if isinstance(node, (ast.If, ast.IfExp)):
        tested = ast.dump(node.test).lower()
        return any(word in tested for word in ("static", "hybrid", "version", "transformers"))
    return isinstance(node, ast.Try)
