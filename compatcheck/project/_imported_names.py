"""The names that a file of Python surely imports from other packages as soon as it is loaded."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from typing import Any


def imported_names(tree: ast.Module, file: str, told: Collection[int] = ()) -> Iterator[dict[str, Any]]:
    """``module``, ``name``, ``file`` and ``line`` of each; None for the name where a submodule is imported whole.

    Only what stands outside of functions and conditions counts: the rest is tried, or made for some releases. The lines
    that are ``told`` already are left out.
    """
    for node in tree.body:
        asked: list[tuple[str, str | None]] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            asked = [(node.module, each.name) for each in node.names if each.name != "*"]
        elif isinstance(node, ast.Import):
            asked = [(each.name, None) for each in node.names if "." in each.name]
        for module, name in asked:
            if module.partition(".")[0] not in sys.stdlib_module_names and node.lineno not in told:
                yield {"module": module, "name": name, "file": file, "line": node.lineno}
