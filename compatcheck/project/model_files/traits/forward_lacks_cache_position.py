"""Generation hands all that is prepared to a forward pass that has no ``cache_position``, as 4.39.0 and later prepare.

https://github.com/haotian-liu/LLaVA/issues/1448
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import Function, calls, is_super, methods, parameters
from compatcheck.project.model_files.traits._code import Code, classes, lineage

KIND = "model"
_PREPARE = "prepare_inputs_for_generation"
_PREPARING = ("Llama", "Gemma", "Cohere")
"""How classes are called whose own preparation has it in 4.39.0 and in every later release."""


def find(code: Code) -> int | None:
    """The line of such a forward; a file that names ``cache_position`` in a string, as to take it out, is let be."""
    if any(isinstance(each, ast.Constant) and each.value == "cache_position" for each in code.nodes):
        return None
    for node in classes(code):
        own = methods(node)
        forward, prepare = own.get("forward"), own.get(_PREPARE)
        if forward and prepare and forward.args.kwarg is None and (_hands_all_on(prepare) or _inherits(code, node)):
            taken = {*parameters(forward), *parameters(prepare)}
            if "cache_position" not in taken:
                return forward.lineno
    return None


def _inherits(code: Code, node: ast.ClassDef) -> bool:
    """Whether it goes on from what a class of transformers prepares that has it."""
    prepare = methods(node)[_PREPARE]
    parents = (call.func for call in calls(prepare, _PREPARE))
    asks = any(isinstance(each, ast.Attribute) and is_super(each.value) for each in parents)
    return asks and any(name.startswith(_PREPARING) for name in lineage(code, node)[1])


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
