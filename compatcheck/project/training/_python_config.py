"""What a Python configuration assigns, read from its syntax tree; nothing of it is run or imported.

Follows mmengine 0.10.7, ``config/config.py``: ``_base_`` names files that are merged under the file's own values,
``with read_base():`` brings the names of another file in, and assignments then happen in their order.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import OversizeError
from compatcheck.project.python_values import Open, Reference
from compatcheck.project.training._python_value import DOING, Evaluator, Node
from compatcheck.project.training.document import Document, Keys, open_document

_DELETE = "_delete_"


class _Reading(NamedTuple):
    """The files that are being read, outermost first, and how many were opened so far."""

    chain: tuple[str, ...]
    opened: list[int]


def evaluated(document: Document) -> Document:
    """A Python file with the values that it and the files it is based on assign, each with its place.

    `Open` and `Reference` stand for what is no literal.
    Raises `InputError` where a file it is based on is missing, leads back to it, or cannot be merged, and
    `OversizeError` where the whole is out of all proportion.
    """
    try:
        names = _names_of(document, _Reading((), [0]))
        places: dict[Keys, Location] = {}
        value = _plain(Node(names, document.path, 1), (), places)
    except RecursionError:
        raise OversizeError(DOING, document.path, "the content is nested too deeply", "pass an ordinary file") from None
    return Document(document.path, document.text, value, {}, places)


def _names_of(document: Document, reading: _Reading) -> dict[str, Node]:
    """The names that a file assigns or brings in, with their values."""
    real = os.path.realpath(document.path)
    if real in reading.chain:
        raise InputError(DOING, document.path, "the _base_ files form a cycle", "remove the cycle of _base_ files")
    reading.opened[0] += 1
    if reading.opened[0] > limits.PYTHON_FILES:
        raise OversizeError(
            DOING, document.path, f"the file has over {limits.PYTHON_FILES} base files", "pass an ordinary file"
        )
    reading = _Reading((*reading.chain, real), reading.opened)
    evaluator = Evaluator(document.path)
    bases = _bases(document, evaluator)
    base = _together(document, [_names_of(_opened(document, each), reading) for each in bases])
    if bases:
        evaluator.names["_base_"] = Node(base, document.path, 1)
    for statement in document.value.body:
        if _is_read_base(statement):
            for inner in statement.body:
                _bring_in(document, inner, evaluator, reading)
        elif not _assigns_base(statement):
            evaluator.run(statement)
    evaluator.names.pop("_base_", None)
    return _merge(evaluator.names, base, document.path) if bases else evaluator.names


def _assigns_base(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and any(
        isinstance(each, ast.Name) and each.id == "_base_" for each in statement.targets
    )


def _is_read_base(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.With):
        return False
    call = statement.items[0].context_expr
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "read_base"


def _bases(document: Document, evaluator: Evaluator) -> list[str]:
    """The files that ``_base_`` names, as they are written."""
    statement = next((each for each in document.value.body if _assigns_base(each)), None)
    if statement is None:
        return []
    node = evaluator.value(statement.value)
    listed = node.value if isinstance(node.value, list) else [node]
    paths = [each.value for each in listed]
    if not all(isinstance(each, str) for each in paths):
        raise InputError(DOING, document.path, f"line {node.line}: _base_ is not a path", "pass its base files instead")
    return paths


def _opened(document: Document, path: str) -> Document:
    """A file that another is based on, named from the folder of that one."""
    whole = os.path.join(os.path.dirname(document.path), path)
    if not path.endswith(".py"):
        seen = f"the base file {path} is not a Python file"
        raise InputError(DOING, document.path, seen, "pass a Python file")
    if not os.path.isfile(whole):
        seen = f"the base file {path} does not exist"
        raise InputError(DOING, document.path, seen, "put the file there, or correct the path")
    return open_document(whole)


def _together(document: Document, bases: list[dict[str, Node]]) -> dict[str, Node]:
    result: dict[str, Node] = {}
    for base in bases:
        twice = sorted(name for name in result.keys() & base.keys() if not _is_imported(base[name]))
        if twice:
            raise InputError(
                DOING, document.path, f"two of the base files set {twice[0]}", "keep the setting in one of them"
            )
        result.update(base)
    return result


def _is_imported(node: Node) -> bool:
    return isinstance(node.value, Reference)


def _merge(own: Mapping[str, Node], base: Mapping[str, Node], path: str) -> dict[str, Node]:
    """The values of a base with a file's own in their place; mappings meet key by key (``_merge_a_into_b``)."""
    result = dict(base)
    for name, node in own.items():
        under = result.get(name)
        if not isinstance(node.value, dict):
            result[name] = node
            continue
        inner = {key: each for key, each in node.value.items() if key != _DELETE}
        deletes = _DELETE in node.value and node.value[_DELETE].value is True
        if under is None or deletes or isinstance(under.value, Open):
            result[name] = Node(inner, node.file, node.line)
        elif isinstance(under.value, dict):
            result[name] = Node(_merge(inner, under.value, path), node.file, node.line)
        else:
            seen = f"line {node.line}: {name} is a mapping here but not in the base"
            raise InputError(DOING, path, seen, f"add {_DELETE}=True to replace the value of the base")
    return result


def _bring_in(document: Document, statement: ast.stmt, evaluator: Evaluator, reading: _Reading) -> None:
    """What ``from .file import *`` below ``with read_base():`` brings in; packages are not looked for."""
    if not isinstance(statement, ast.ImportFrom):
        return
    if statement.level == 0 or not statement.module:
        evaluator.run(statement)
        evaluator.incomplete = f"{statement.module or '.'} is not read"
        return
    folders = [os.pardir] * (statement.level - 1)
    path = os.path.join(*folders, *statement.module.split(".")) + ".py"
    names = _names_of(_opened(document, path), reading)
    for alias in statement.names:
        if alias.name == "*":
            evaluator.names.update(names)
        elif alias.name in names:
            evaluator.names[alias.asname or alias.name] = names[alias.name]
        else:
            seen = f"line {statement.lineno}: {path} has no {alias.name}"
            raise InputError(DOING, document.path, seen, "correct the name")


def _plain(node: Node, keys: Keys, places: dict[Keys, Location]) -> object:
    """The value of a node as mappings and lists, with the place of each; shared parts count as often as they stand."""
    if len(places) > limits.PYTHON_VALUES:
        raise OversizeError(
            DOING, node.file, f"the file creates more than {limits.PYTHON_VALUES} values", "pass an ordinary file"
        )
    if len(keys) > limits.PYTHON_DEPTH:
        raise OversizeError(DOING, node.file, "the content is nested too deeply", "pass an ordinary file")
    places[keys] = Location(node.file, node.line)
    if isinstance(node.value, dict):
        return {key: _plain(each, (*keys, key), places) for key, each in _entries(node.value)}
    if isinstance(node.value, list):
        return [_plain(each, (*keys, i), places) for i, each in enumerate(node.value)]
    return node.value


def _entries(value: Mapping[Any, Node]) -> Iterator[tuple[str, Node]]:
    return ((key, each) for key, each in value.items() if isinstance(key, str))
