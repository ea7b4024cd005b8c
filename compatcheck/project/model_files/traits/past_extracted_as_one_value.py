"""Generation takes what ``_extract_past_from_model_output`` returns as the cache itself.

transformers 4.42.0 made the method return a pair of name and cache, 4.44.0 dropped its ``standardize_cache_format``
and later releases dropped the method: https://github.com/zai-org/GLM-4/issues/472
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls, is_self
from compatcheck.project.model_files.traits._code import Code

KIND = "model"
_METHOD = "_extract_past_from_model_output"


def find(code: Code) -> int | None:
    """The line of such an assignment; a file that also takes the pair tells releases apart and is let be."""
    for function in code.nodes:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name == _METHOD:
            return None
    taken = [each for each in code.nodes if isinstance(each, ast.Assign) and _takes_one(each)]
    if not taken or len(taken) != len(list(calls(code.tree, _METHOD))):
        return None
    return taken[0].lineno


def _takes_one(node: ast.Assign) -> bool:
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != _METHOD:
        return False
    return is_self(call.func.value) and not any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets)
