"""The forward pass reads a cache as tuples of tensors, where generation hands it an empty cache object.

transformers does so from 4.54.0 on, but for 5.0.0: https://github.com/open-compass/VLMEvalKit/pull/1297
"""

from __future__ import annotations

import ast

from compatcheck.facts.model_files.traits._code import Code, calls, last_name

TRAIT = "cache-indexed-as-tuple"
KIND = "model"
_KNOWS_CACHES = {"from_legacy_cache", "get_seq_length", "_supports_cache_class", "_is_stateful"}


def find(code: Code) -> int | None:
    """The line of ``past_key_values[0][0]``, unless the file knows cache objects or first asks whether one is empty."""
    if any(_knows_caches(each) for each in code.nodes):
        return None
    if any(isinstance(argument, ast.Name) and argument.id == "Cache" for argument in _asked_for(code)):
        return None
    asked = (each for each in code.nodes if isinstance(each, ast.If) and _is_past(each.test))
    let_be = {id(inner) for each in asked for statement in each.body for inner in ast.walk(statement)}
    inside = (each for function in _forwards(code) for each in ast.walk(function))
    read = (each for each in inside if isinstance(each, ast.Subscript) and id(each) not in let_be)
    return min((each.lineno for each in read if _is_first_tensor(each)), default=None)


def _forwards(code: Code) -> list[ast.FunctionDef]:
    return [each for each in code.nodes if isinstance(each, ast.FunctionDef) and each.name.endswith("forward")]


def _knows_caches(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name == "_supports_default_dynamic_cache"
    return last_name(node) in _KNOWS_CACHES if isinstance(node, (ast.Attribute, ast.Name)) else False


def _asked_for(code: Code) -> list[ast.expr]:
    """What ``isinstance`` is asked about, of a tuple of classes each."""
    wanted = [call.args[1] for call in calls(code.tree, "isinstance") if len(call.args) > 1]
    return [one for each in wanted for one in (each.elts if isinstance(each, ast.Tuple) else [each])]


def _is_first_tensor(node: ast.Subscript) -> bool:
    inner = node.value if _is_zero(node.slice) else None
    return isinstance(inner, ast.Subscript) and _is_zero(inner.slice) and _is_past(inner.value)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_past(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id.startswith("past")
