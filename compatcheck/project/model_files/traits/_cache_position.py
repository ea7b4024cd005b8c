"""Which forward passes have no ``cache_position`` among their arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable

from compatcheck.files.python_syntax import methods, parameters
from compatcheck.project.model_files.traits._code import Code, classes

PREPARE = "prepare_inputs_for_generation"


def find_forward(code: Code, receives: Callable[[ast.ClassDef], bool]) -> int | None:
    """The line of a forward without it in a class that ``receives`` it.

    A file that names ``cache_position`` in a string, as to take it out, is let be.
    """
    if any(isinstance(each, ast.Constant) and each.value == "cache_position" for each in code.nodes):
        return None
    for node in classes(code):
        own = methods(node)
        forward, prepare = own.get("forward"), own.get(PREPARE)
        if forward and prepare and forward.args.kwarg is None and receives(node):
            taken = {*parameters(forward), *parameters(prepare)}
            if "cache_position" not in taken:
                return forward.lineno
    return None
