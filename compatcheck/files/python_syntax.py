"""Python that is read and never run: its syntax tree, and what the rules over it ask most."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.lru_cache(maxsize=1)
def nodes_of(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a tree, walked once for all rules."""
    return tuple(ast.walk(tree))


@functools.lru_cache(maxsize=32)
def parse_code(source: str) -> ast.Module | None:
    """The syntax tree, or ``None`` where this Python cannot parse it; readers of one file share it, unchanged."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


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
    for each in nodes_of(node) if isinstance(node, ast.Module) else ast.walk(node):
        if isinstance(each, ast.Call) and last_name(each.func) == name:
            yield each


def inside(nodes: Iterable[ast.AST]) -> set[int]:
    """The identities of these nodes and of all below them, to tell what stands in a condition or is tried."""
    return {id(inner) for each in nodes for inner in ast.walk(each)}


def attributes_set(tree: ast.Module) -> set[str]:
    """The names of the attributes that anything in the file sets."""
    return {each.attr for each in nodes_of(tree) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)}


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def is_super(node: ast.expr) -> bool:
    """``super()`` in either form."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
