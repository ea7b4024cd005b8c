"""``_supports_sdpa`` is a property that asks a model inside, which is not there yet when transformers 4.54.0 reads it.

https://github.com/yiwangsimple/florence_dw/pull/7
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import is_self, last_name, methods
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "model"


def find(code: Code) -> int | None:
    declared = [method for node in classes(code) if (method := methods(node).get("_supports_sdpa")) is not None]
    lines = [
        each.lineno
        for each in declared
        if any(last_name(decorator) == "property" for decorator in each.decorator_list)
        and any(_is_of_a_part(inner) for inner in ast.walk(each))
    ]
    return min(lines, default=None)


def _is_of_a_part(node: ast.AST) -> bool:
    """Whether it is an attribute of the model other than its configuration, which is there from the start."""
    return isinstance(node, ast.Attribute) and is_self(node.value) and node.attr != "config"
