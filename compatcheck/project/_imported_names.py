"""The names that a file of Python surely imports from other packages as soon as it is loaded."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import NamedTuple


class ImportedName(NamedTuple):
    """A name of a module and the line that imports it; ``name`` is None where a submodule is imported whole."""

    module: str
    name: str | None
    file: str
    line: int

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


def imported_names(tree: ast.Module, file: str) -> Iterator[ImportedName]:
    """Each import outside of functions and conditions: the rest is tried, or made for some releases."""
    for node in tree.body:
        names: list[tuple[str, str | None]] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [(node.module, each.name) for each in node.names if each.name != "*"]
        elif isinstance(node, ast.Import):
            names = [(each.name, None) for each in node.names if "." in each.name]
        for module, name in names:
            if module.partition(".")[0] not in sys.stdlib_module_names:
                yield ImportedName(module, name, file, node.lineno)
