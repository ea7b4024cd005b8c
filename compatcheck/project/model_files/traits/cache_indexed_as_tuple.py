"""The forward pass reads a cache as tuples of tensors, where generation hands it an empty cache object.

transformers does so from 4.54.0 on, but for 5.0.0: https://github.com/open-compass/VLMEvalKit/pull/1297
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls, inside, last_name, parameters
from compatcheck.project.model_files.traits._code import Code

KIND = "model"
_KNOWS_CACHES = {"from_legacy_cache", "to_legacy_cache", "get_seq_length", "_supports_cache_class", "_is_stateful"}
_OWN_WAYS = {"_supports_default_dynamic_cache", "_prepare_cache_for_generation"}


def find(code: Code) -> int | None:
    """The line of ``past_key_values[0][0]``, unless the file knows cache objects or first asks what one is or holds.

    A forward pass that takes ``query_embeds`` is let be: such a Q-Former stands beside the language model, and
    generation hands it no cache.
    """
    if any(_knows_caches(each) for each in code.nodes):
        return None
    if any(_is_past(argument) or last_name(argument) == "Cache" for argument in _type_tests(code)):
        return None
    asked = (each for each in code.nodes if isinstance(each, ast.If) and _is_past(each.test))
    let_be = inside(statement for each in asked for statement in each.body)
    nodes = (each for function in _forwards(code) for each in ast.walk(function))
    read = (each for each in nodes if isinstance(each, ast.Subscript) and id(each) not in let_be)
    return min((each.lineno for each in read if _is_first_tensor(each)), default=None)


def _forwards(code: Code) -> list[ast.FunctionDef]:
    named = (each for each in code.nodes if isinstance(each, ast.FunctionDef) and each.name.endswith("forward"))
    return [each for each in named if "query_embeds" not in parameters(each)]


def _knows_caches(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in _OWN_WAYS
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Subscript) and _is_first_tensor(node.left):
        return isinstance(node.ops[0], (ast.Is, ast.IsNot))
    return last_name(node) in _KNOWS_CACHES if isinstance(node, (ast.Attribute, ast.Name)) else False


def _type_tests(code: Code) -> list[ast.expr]:
    """What ``isinstance`` and ``hasattr`` are asked of and about, of a tuple of classes each."""
    wanted = [each for name in ("isinstance", "hasattr") for call in calls(code.tree, name) for each in call.args]
    return [one for each in wanted for one in (each.elts if isinstance(each, ast.Tuple) else [each])]


def _is_first_tensor(node: ast.Subscript) -> bool:
    inner = node.value if _is_zero(node.slice) else None
    return isinstance(inner, ast.Subscript) and _is_zero(inner.slice) and _is_past(inner.value)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_past(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id.startswith("past")
