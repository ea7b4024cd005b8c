"""Generation hands all that is prepared to a forward pass that has no ``cache_position``, as 4.39.0 and later prepare.

https://github.com/huggingface/transformers/issues/29426
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import Function, calls, methods
from compatcheck.project.model_files.traits._cache_position import PREPARE, find_forward
from compatcheck.project.model_files.traits._code import Code

KIND = "model"


def find(code: Code) -> int | None:
    """The line of such a forward."""
    return find_forward(code, lambda node: _hands_all_on(methods(node)[PREPARE]))


def _hands_all_on(prepare: Function) -> bool:
    """Whether it puts its own ``**kwargs`` among what it returns."""
    given = prepare.args.kwarg.arg if prepare.args.kwarg else None
    if given is None:
        return False
    updates = (call for call in calls(prepare, "update") if call.args)
    if any(isinstance(call.args[0], ast.Name) and call.args[0].id == given for call in updates):
        return True
    unpacked = (each for each in ast.walk(prepare) if isinstance(each, ast.Dict) and None in each.keys)
    return any(
        isinstance(value, ast.Name) and value.id == given
        for each in unpacked
        for key, value in zip(each.keys, each.values, strict=True)
        if key is None
    )
