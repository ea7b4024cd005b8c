"""The model's own code calls torch's checkpoint with ``use_reentrant=False``.

Its authors say that this may take more memory than True: https://github.com/zai-org/ChatGLM3/issues/866
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls
from compatcheck.project.model_files.traits._code import Code

KIND = "model"


def find(code: Code) -> int | None:
    for call in calls(code.tree, "checkpoint"):
        for keyword in call.keywords:
            if keyword.arg == "use_reentrant" and _is_false(keyword.value):
                return call.lineno
    return None


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
