"""A forward pass without ``cache_position`` gets what the model of transformers that it inherits from prepares.

Llama and its like prepare it from 4.39.0 to 5.3.0. https://github.com/haotian-liu/LLaVA/issues/1448
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls, is_super, methods
from compatcheck.project.model_files.traits._cache_position import PREPARE, find_forward
from compatcheck.project.model_files.traits._code import Code, lineage

KIND = "model"
_PREPARING = ("Llama", "Gemma", "Cohere")
"""How classes are called whose own preparation has it in 4.39.0 and in the later releases up to 5.3.0."""


def find(code: Code) -> int | None:
    """The line of such a forward."""
    return find_forward(code, lambda node: _inherits(code, node))


def _inherits(code: Code, node: ast.ClassDef) -> bool:
    """Whether it goes on from what a class of transformers prepares that has it."""
    parents = (call.func for call in calls(methods(node)[PREPARE], PREPARE))
    asks = any(isinstance(each, ast.Attribute) and is_super(each.value) for each in parents)
    return asks and any(name.startswith(_PREPARING) for name in lineage(code, node)[1])
