"""With which arguments a model's own code calls the mask functions of transformers."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from compatcheck.facts.model_files.traits._code import Code, calls, last_name
from compatcheck.facts.model_files.traits._imports import line_of_import

_FUNCTIONS = ("create_causal_mask", "create_sliding_window_causal_mask", "create_chunked_causal_mask")
_SPEAKS_OF_RELEASES = ("version", "signature", "param", "transformers")


def line_of_mask_argument(code: Code, arguments: Collection[str]) -> int | None:
    """The line of a call that surely gives one of the arguments by its name.

    A mapping that is handed over as ``**name`` counts where it is written out in the file. What is tried, and what
    stands under a condition that asks for a release or a signature, is let be.
    """
    if line_of_import(code, r"transformers\.masking_utils", _FUNCTIONS) is None:
        return None
    let_be = {id(inner) for each in code.nodes if _asks(each) for inner in ast.walk(each)}
    written = _mappings(code, let_be)
    for function in _FUNCTIONS:
        for call in calls(code.tree, function):
            if id(call) not in let_be and not set(arguments).isdisjoint(_names(call, written)):
                return call.lineno
    return None


def _asks(node: ast.AST) -> bool:
    if isinstance(node, (ast.If, ast.IfExp)):
        condition = ast.unparse(node.test).lower()
        return any(word in condition for word in _SPEAKS_OF_RELEASES)
    return isinstance(node, ast.Try)


def _mappings(code: Code, let_be: Collection[int]) -> dict[str, set[str]]:
    """The keys of mappings that are written out, by the variable that holds them, less those that are taken out."""
    found: dict[str, set[str]] = {}
    for node in code.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and id(node) not in let_be:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, set()).update(_constants(node.value.keys))
    for call in calls(code.tree, "pop"):
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            found.get(call.func.value.id, set()).difference_update(_constants(call.args[:1]))
    return found


def _constants(nodes: Collection[ast.expr | None]) -> set[str]:
    return {each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def _names(call: ast.Call, written: dict[str, set[str]]) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg:
            yield keyword.arg
        else:
            yield from written.get(last_name(keyword.value) or "", ())
