"""``apply_chat_template`` gives the token ids of one conversation as a list within a list.

A fine-tuning script that expects a flat list slices the outer one away, and every label is masked: loss 0.0 with
grad_norm 0.0. GLM-4's tokenizer of June 2024: https://github.com/zai-org/GLM-4/issues/260
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import Function, is_self, last_name, methods
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "tokenizer"


def find(code: Code) -> int | None:
    for node in classes(code):
        method = methods(node).get("apply_chat_template")
        if method is not None:
            line = _nested_return(method)
            if line is not None:
                return line
    return None


def _nested_return(method: Function) -> int | None:
    """The line that returns ``input_ids`` whole, of an encoding of a batch of one; none where the batch is undone."""
    batches = {target for name in ("batch_encode_plus", "__call__") for target in _batches_of_one(method, name)}
    found = None
    for each in ast.walk(method):
        if isinstance(each, ast.Return) and each.value is not None:
            if _is_first_of(each.value):
                return None
            if _is_input_ids(each.value, batches):
                found = each.lineno
    return found


def _batches_of_one(method: Function, name: str) -> set[str]:
    """The variables that hold ``self.name([...])``, where the list may stand in one arm of a condition."""
    found: set[str] = set()
    for each in ast.walk(method):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call) and each.value.args:
            call = each.value
            named = name == last_name(call.func) and isinstance(call.func, ast.Attribute) and is_self(call.func.value)
            if (named or (name == "__call__" and is_self(call.func))) and _is_wrapped(call.args[0]):
                found |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    return found


def _is_wrapped(argument: ast.expr) -> bool:
    if isinstance(argument, ast.IfExp):
        return isinstance(argument.body, ast.List) or isinstance(argument.orelse, ast.List)
    return isinstance(argument, ast.List)


def _is_input_ids(node: ast.expr, batches: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "input_ids" and last_name(node.value) in batches
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value == "input_ids" and last_name(node.value) in batches
    return False


def _is_first_of(node: ast.expr) -> bool:
    """``something["input_ids"][0]``."""
    first = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 0
    return first and "input_ids" in ast.dump(node)
