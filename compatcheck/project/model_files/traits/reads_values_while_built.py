"""A module takes numbers out of tensors in ``__init__``, which transformers 5.0.0 runs without any values in them.

https://github.com/OpenGVLab/InternVL/issues/1254
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls, methods
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "model"


def find(code: Code) -> int | None:
    """The line of ``item()`` in a constructor, unless something in it has a device that is named, or is numpy's."""
    constructors = (methods(node).get("__init__") for node in classes(code))
    lines = [
        call.lineno
        for function in constructors
        if function is not None and not any(_has_values(each) for each in ast.walk(function))
        for call in calls(function, "item")
        if not call.args
    ]
    return min(lines, default=None)


def _has_values(node: ast.AST) -> bool:
    of_numpy = isinstance(node, ast.Name) and node.id in ("np", "numpy")
    return of_numpy or (isinstance(node, ast.keyword) and node.arg == "device")
