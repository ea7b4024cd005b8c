"""The code registers a configuration as ``aimv2``, a name that transformers 4.54.0 has given to a model of its own.

https://github.com/BBC-Esq/VectorDB-Plugin/issues/433
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls, last_name
from compatcheck.project.model_files.traits._code import Code

KIND = "model"


def find(code: Code) -> int | None:
    lines = [call.lineno for call in calls(code.tree, "register") if _takes_the_name(call)]
    return min(lines, default=None)


def _takes_the_name(call: ast.Call) -> bool:
    """Whether it is ``AutoConfig.register("aimv2", ...)`` that does not say that the name may exist."""
    named = bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == "aimv2"
    of_configs = isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "AutoConfig"
    return named and of_configs and not any(each.arg == "exist_ok" for each in call.keywords)
