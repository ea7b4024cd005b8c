"""What a trait rule is given: one file of a model's own code, as its syntax tree."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

Kind = Literal["model", "tokenizer"]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Code(NamedTuple):
    """One file; ``entry_points`` are the classes that the model's configuration names.

    ``configured`` are the attributes that the code of the configuration sets itself. ``names_special_tokens`` says
    whether the tokenizer's files name a special token that the tokenizer has still to add.
    """

    name: str
    kind: Kind
    tree: ast.Module
    entry_points: frozenset[str] = frozenset()
    configured: frozenset[str] = frozenset()
    names_special_tokens: bool = True

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, walked once for all rules."""
        return _nodes(self.tree)


@functools.lru_cache(maxsize=1)
def _nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


def parse_code(source: str) -> ast.Module | None:
    """The syntax tree, or ``None`` where this Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def classes(code: Code) -> list[ast.ClassDef]:
    return [node for node in code.nodes if isinstance(node, ast.ClassDef)]


def methods(node: ast.ClassDef) -> dict[str, Function]:
    """The methods that a class defines itself; of two with one name the later counts, as in Python."""
    return {item.name: item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))}


def parameters(function: Function) -> list[str]:
    """The names of the parameters that can be given by keyword, less ``**kwargs``."""
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def base_names(node: ast.ClassDef) -> list[str]:
    """The last part of each base's name: ``PreTrainedModel`` of ``transformers.PreTrainedModel``."""
    return [name for base in node.bases if (name := last_name(base))]


def last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def calls(node: ast.AST, name: str) -> Iterator[ast.Call]:
    """The calls of a function or method of this name, wherever it comes from."""
    for each in _nodes(node) if isinstance(node, ast.Module) else ast.walk(node):
        if isinstance(each, ast.Call) and last_name(each.func) == name:
            yield each


def inside(nodes: Iterable[ast.AST]) -> set[int]:
    """The identities of these nodes and of all below them, to tell what stands in a condition or is tried."""
    return {id(inner) for each in nodes for inner in ast.walk(each)}


def attributes_set(tree: ast.Module) -> set[str]:
    """The names of the attributes that anything in the file sets."""
    return {each.attr for each in _nodes(tree) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)}


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def is_super(node: ast.expr) -> bool:
    """``super()`` in either form."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


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
