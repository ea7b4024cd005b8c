"""Source files as the syntax trees that the simulated run follows.

Bodies of methods, of coroutines and of long functions are never followed. Most of them are blanked before parsing,
which saves time and memory, and the others are cut from the tree; all else is as it was, but for texts that hold code.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable

from compatcheck.files import limits
from compatcheck.files.reading import open_bytes

_LONGEST_FUNCTION = 100
_CLASS = re.compile(r"^class .*\n(?:[ \t].*\n|\n|#.*\n|\).*\n)*", re.MULTILINE)
_TO_COLON = r"(?:(?!:[ \t]*(?:#.*)?$).)*"
_METHOD = re.compile(
    rf"^(    (?:async )?def {_TO_COLON}(?:\n(?:     |    \)){_TO_COLON})*:.*\n)((?:     .*\n|[ \t]*(?:#.*)?\n)+)",
    re.MULTILINE,
)


def read(path: str) -> str:
    """The text of a source file; what cannot be read does not parse either."""
    try:
        with open_bytes(path) as stream:
            raw = stream.read(limits.IMPORTED_BYTES + 1)
    except OSError:
        return "\0"
    if len(raw) > limits.IMPORTED_BYTES:
        return "\0"
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return text.replace("\r\n", "\n")


def parse(source: str) -> ast.Module | None:
    """The tree of a module, or None where it has none; a function without a body is not to be followed."""
    tree = _tree(_CLASS.sub(lambda found: _METHOD.sub(_blank_body, found[0]), source)) or _tree(source)
    if tree is not None:
        _drop_bodies(tree.body, in_class=False)
    return tree


def _blank_body(found: re.Match[str]) -> str:
    """A method whose body is an ellipsis on its last line, so that all lines keep their numbers."""
    body = found[2]
    if body.count('"""') % 2 or body.count("'''") % 2:
        return found[0]
    return f"{found[1]}{chr(10) * (body.count(chr(10)) - 1)}     ...\n"


def _tree(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _drop_bodies(body: Iterable[ast.AST], in_class: bool) -> None:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            long = (node.end_lineno or node.lineno) - node.lineno > _LONGEST_FUNCTION
            if in_class or long or isinstance(node, ast.AsyncFunctionDef):
                node.body = []
            else:
                _drop_bodies(node.body, in_class=False)
        elif isinstance(node, ast.ClassDef):
            _drop_bodies(node.body, in_class=True)
        else:
            for block in ("body", "orelse", "handlers", "finalbody", "cases"):
                inner = getattr(node, block, ())
                if isinstance(inner, list):
                    _drop_bodies(inner, in_class)
