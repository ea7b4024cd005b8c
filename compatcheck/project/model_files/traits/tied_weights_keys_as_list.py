"""A model class names its tied weights in a list, where transformers 5.0.0 and later ask for a mapping.

https://github.com/huggingface/transformers/issues/44861
"""

from __future__ import annotations

import ast

from compatcheck.project.model_files.traits._code import Code, classes

KIND = "model"


def find(code: Code) -> int | None:
    """The line of such a list that is not empty, in a file that has no mapping beside it."""
    named = [value for node in classes(code) for value in _values(node)]
    if any(isinstance(value, (ast.Dict, ast.IfExp, ast.Call)) for value in named):
        return None
    return min(
        (value.lineno for value in named if isinstance(value, (ast.List, ast.Tuple)) and value.elts), default=None
    )


def _values(node: ast.ClassDef) -> list[ast.expr]:
    """What the class binds to the name."""
    bound = [item.value for item in node.body if isinstance(item, ast.Assign) and any(map(_is_named, item.targets))]
    annotated = [item.value for item in node.body if isinstance(item, ast.AnnAssign) and _is_named(item.target)]
    return [*bound, *filter(None, annotated)]


def _is_named(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "_tied_weights_keys"
