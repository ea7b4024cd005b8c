"""A module takes numbers out of tensors in ``__init__``, which transformers 5.0.0 runs without any values in them.

https://github.com/OpenGVLab/InternVL/issues/1254
"""

from __future__ import annotations

import ast

from compatcheck.facts.model_files.traits._code import Code, calls, classes, methods

TRAIT = "reads-values-while-built"
KIND = "model"


def find(code: Code) -> int | None:
    """The line of ``item()`` in a constructor, unless something in it is made on a device that the code names."""
    constructors = (methods(node).get("__init__") for node in classes(code))
    lines = [
        call.lineno
        for function in constructors
        if function is not None and not any(each.arg == "device" for each in _keywords(function))
        for call in calls(function, "item")
        if not call.args
    ]
    return min(lines, default=None)


def _keywords(function: ast.AST) -> list[ast.keyword]:
    return [each for each in ast.walk(function) if isinstance(each, ast.keyword)]
