"""What a trait rule is given: one file of a model's own code, as its syntax tree."""

from __future__ import annotations

import ast
from typing import Literal, NamedTuple

from compatcheck.files.python_syntax import base_names, nodes_of

Kind = Literal["model", "tokenizer"]


class Code(NamedTuple):
    """One file; ``entry_points`` are the classes that the model's configuration names.

    ``configured`` are the attributes that the code of the configuration sets itself. ``names_special_tokens`` says
    whether the tokenizer's files name a special token that the tokenizer has still to add, and ``scales_rope`` whether
    the configuration scales RoPE.
    """

    name: str
    kind: Kind
    tree: ast.Module
    entry_points: frozenset[str] = frozenset()
    configured: frozenset[str] = frozenset()
    names_special_tokens: bool = True
    scales_rope: bool = False

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, walked once for all rules."""
        return nodes_of(self.tree)


def classes(code: Code) -> list[ast.ClassDef]:
    return [node for node in code.nodes if isinstance(node, ast.ClassDef)]


def lineage(code: Code, node: ast.ClassDef) -> tuple[list[ast.ClassDef], set[str]]:
    """The class with its ancestors in this file, nearest first, and the names of the bases that lie elsewhere."""
    local = {each.name: each for each in classes(code)}
    found, outside, waiting = [node], set(), [node]
    while waiting:
        for name in base_names(waiting.pop(0)):
            ancestor = local.get(name)
            if ancestor is None:
                outside.add(name)
            elif ancestor not in found:
                found.append(ancestor)
                waiting.append(ancestor)
    return found, outside
