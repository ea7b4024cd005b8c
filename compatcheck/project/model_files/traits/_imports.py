"""What a file imports of transformers whenever it is loaded."""

from __future__ import annotations

import ast
import re

from compatcheck.project.model_files.traits._code import Code


def line_of_import(code: Code, module: str, names: tuple[str, ...]) -> int | None:
    """The first line that imports one of the names from a module of transformers, given as a regular expression.

    Only what stands outside of functions and conditions counts: the rest is tried, or made for some releases.
    """
    for node in code.tree.body:
        of_module = isinstance(node, ast.ImportFrom) and not node.level and re.fullmatch(module, node.module or "")
        if isinstance(node, ast.ImportFrom) and of_module and any(each.name in names for each in node.names):
            return node.lineno
    return None
