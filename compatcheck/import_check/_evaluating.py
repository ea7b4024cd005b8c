"""Expressions of the simulated run: what is known is computed, all else is `UNKNOWN`."""

from __future__ import annotations

import ast
import operator
import pathlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.import_check._importing import Importing
from compatcheck.import_check._methods import method
from compatcheck.import_check._natives import BUILTINS, NATIVE_MODULES, NATIVES, SYS_MODULES
from compatcheck.import_check._values import (
    SPEC,
    UNKNOWN,
    Array,
    Class,
    Frame,
    Function,
    Module,
    Namespace,
    Native,
    Table,
    Value,
    is_constant,
    truth,
)

_HARMLESS = ("logger", "logging", "warnings", "log", "LOGGER", "_logger")
_LONGEST = 5000
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_BINARY: dict[type, Callable[[Any, Any], Any]] = {ast.Add: operator.add, ast.Mod: operator.mod, ast.Sub: operator.sub}
_VERSION_PARTS = (
    "base_version", "public", "local", "release", "major", "minor", "micro", "is_prerelease", "is_devrelease",
)  # fmt: skip


@cache
def _handler_name(kind: str) -> str:
    return f"_{kind.lower()}"


class Bound(NamedTuple):
    """A method of a value whose methods are known here."""

    value: Value
    name: str


class Evaluating(Importing):
    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        handler = getattr(self, _handler_name(type(node).__name__), None)
        return handler(node, frame) if handler else self.unknown()

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return node.value

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        return self.lookup(node.id, frame)

    def lookup(self, name: str, frame: Frame) -> Value:
        scope: Frame | None = frame
        while scope is not None:
            if name in scope.names and name not in scope.globals and (scope is frame or scope.kind != "class"):
                return scope.names[name]
            scope = scope.outer
        if name in frame.module.names:
            return frame.module.names[name]
        return BUILTINS.get(name, UNKNOWN)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        return self.attribute(self.evaluate(node.value, frame), node.attr)

    def attribute(self, value: Value, name: str) -> Value:
        if isinstance(value, Module):
            return Namespace(value) if name == "__dict__" else self.member(value, name, importing=False)
        if isinstance(value, Version) and name in _VERSION_PARTS:
            return getattr(value, name)
        if isinstance(value, pathlib.PurePath) and name in ("parent", "name", "stem", "suffix"):
            return getattr(value, name)
        if isinstance(value, (str, Array, Table, Namespace)) or value is SYS_MODULES:
            return Bound(value, name)
        if isinstance(value, Class) and value.plain and name in value.names:
            return value.names[name]
        if isinstance(value, Class) and isinstance(value.names.get(name), (Function, Module)):
            return UNKNOWN
        return self.unknown(importing=False) if value is UNKNOWN else UNKNOWN

    def known_member(self, module: Module, name: str) -> tuple[Value] | None:
        native = NATIVES.get((module.name, name))
        if native is not None:
            return (native(self) if callable(native) and not isinstance(native, type) else native,)
        dotted = f"{module.name}.{name}"
        return (self.load(dotted),) if dotted in NATIVE_MODULES else None

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in _HARMLESS:
            return UNKNOWN
        function = self.evaluate(node.func, frame)
        arguments: list[Value] = []
        complete = True
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                items = self.items(self.evaluate(argument.value, frame))
                complete = complete and items is not None
                arguments += items or []
            else:
                arguments.append(self.evaluate(argument, frame))
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Table) and value.exact and all(isinstance(key, str) for key in value.items):
                keywords.update(value.items)
            else:
                complete = False
        self.caller = frame
        if not complete:
            return self.leaked([*arguments, *keywords.values()])
        return self.call(function, arguments, keywords)

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        if isinstance(function, Native):
            return function.call(self, arguments, keywords)
        if isinstance(function, Bound):
            return method(self, function.value, function.name, arguments, keywords)
        if isinstance(function, Function):
            return self.call_function(function, arguments, keywords)
        if isinstance(function, Class) and function.name.endswith("LazyModule"):
            from compatcheck.import_check._lazy import lazy_module

            return lazy_module(function, arguments, keywords) or UNKNOWN
        return self.leaked([*arguments, *keywords.values()])

    def call_function(self, function: Function, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        raise NotImplementedError

    def leaked(self, values: list[Value]) -> Value:
        """What an unknown function gives; it may have changed whatever it was handed."""
        for value in values:
            if isinstance(value, (Array, Table)):
                value.exact = False
            elif isinstance(value, Namespace):
                self.open_up(value.module)
            elif isinstance(value, Module) and value.state == "running":
                self.open_up(value)
        return self.unknown()

    def items(self, value: Value) -> list[Value] | None:
        """What iterating gives, or None where that is not known."""
        if isinstance(value, (tuple, frozenset)):
            return list(value)
        if isinstance(value, Array) and value.exact:
            return list(value.items)
        if isinstance(value, Table) and value.exact:
            return list(value.items)
        return None

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        result: bool | None = True
        for operation, right_node in zip(node.ops, node.comparators):
            right = self.evaluate(right_node, frame)
            answer = self.compared(operation, left, right)
            if answer is False:
                return False
            result = None if answer is None else result
            left = right
        return UNKNOWN if result is None else True

    def compared(self, operation: ast.cmpop, left: Value, right: Value) -> bool | None:
        if isinstance(operation, (ast.Is, ast.IsNot)):
            same = _same(left, right)
            return None if same is None else same is isinstance(operation, ast.Is)
        if isinstance(operation, (ast.In, ast.NotIn)):
            inside = self._inside(left, right)
            return None if inside is None else inside is isinstance(operation, ast.In)
        known = (is_constant(left) and is_constant(right)) or (isinstance(left, Version) and isinstance(right, Version))
        if not known:
            return None
        try:
            return bool(_COMPARE[type(operation)](left, right))
        except TypeError:
            return None

    def _inside(self, item: Value, holder: Value) -> bool | None:
        if holder is SYS_MODULES:
            return True if item in self.modules else None
        if isinstance(holder, str) and isinstance(item, str):
            return item in holder
        items = holder.items if isinstance(holder, (Array, Table)) else holder
        if not isinstance(items, (list, dict, tuple, frozenset)) or not is_constant(item):
            return None
        if any(each == item for each in items if is_constant(each)):
            return True
        return False if getattr(holder, "exact", True) and all(map(is_constant, items)) else None

    def _boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        stops_at = isinstance(node.op, ast.Or)
        unsure = False
        value: Value = UNKNOWN
        for part in node.values:
            if unsure:
                frame.unsure += 1
            try:
                value = self.guarded(part, frame) if unsure else self.evaluate(part, frame)
            finally:
                frame.unsure -= unsure
            known = truth(value)
            if known is stops_at:
                return value if not unsure else (UNKNOWN if stops_at else False)
            unsure = unsure or known is None
        return UNKNOWN if unsure else value

    def guarded(self, node: ast.expr, frame: Frame) -> Value:
        """An expression that may not be reached; what it raises is not certain."""
        raise NotImplementedError

    def _unaryop(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return UNKNOWN if known is None else not known
        if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
            return -value
        return UNKNOWN

    def _binop(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        if isinstance(node.op, ast.Add) and isinstance(left, Array) and isinstance(right, Array):
            return Array([*left.items, *right.items], left.exact and right.exact)
        if isinstance(node.op, ast.Div) and isinstance(left, pathlib.PurePath) and isinstance(right, str):
            return left / right
        if type(node.op) in _BINARY and is_constant(left) and is_constant(right):
            try:
                return _BINARY[type(node.op)](left, right)
            except (TypeError, ValueError, KeyError, IndexError):
                return UNKNOWN
        return UNKNOWN

    def _ifexp(self, node: ast.IfExp, frame: Frame) -> Value:
        known = truth(self.evaluate(node.test, frame))
        if known is None:
            self.guarded(node.body, frame)
            self.guarded(node.orelse, frame)
            return UNKNOWN
        return self.evaluate(node.body if known else node.orelse, frame)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        value = self.evaluate(node.value, frame)
        key = self.evaluate(node.slice, frame)
        if value is SYS_MODULES:
            return self.modules.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
        if isinstance(value, Namespace) and isinstance(key, str):
            return value.module.names.get(key, UNKNOWN)
        try:
            if isinstance(value, Table) and (is_constant(key)):
                return value.items[key] if key in value.items else self.unknown()
            if isinstance(value, Array) and value.exact and isinstance(key, int):
                return value.items[key]
            if isinstance(value, (tuple, str)) and isinstance(key, (int, slice)):
                return value[key]
        except (IndexError, TypeError):
            return self.unknown()
        return self.unknown(importing=False) if value is UNKNOWN else UNKNOWN

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        parts = [self.evaluate(each, frame) if each else None for each in (node.lower, node.upper, node.step)]
        return slice(*parts) if all(part is None or isinstance(part, int) for part in parts) else UNKNOWN

    def _joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts = []
        for each in node.values:
            plain = isinstance(each, ast.FormattedValue) and each.format_spec is None and each.conversion == -1
            value = (
                self.evaluate(each.value, frame) if isinstance(each, ast.FormattedValue) else self.evaluate(each, frame)
            )
            if not isinstance(value, (str, int)) or not (plain or isinstance(each, ast.Constant)):
                return UNKNOWN
            parts.append(str(value))
        return "".join(parts)

    def _display(self, nodes: list[ast.expr], frame: Frame) -> tuple[list[Value], bool]:
        values: list[Value] = []
        exact = True
        for node in nodes:
            if isinstance(node, ast.Starred):
                items = self.items(self.evaluate(node.value, frame))
                exact = exact and items is not None
                values += items or []
            else:
                values.append(self.evaluate(node, frame))
        return values, exact

    def _list(self, node: ast.List | ast.Set, frame: Frame) -> Value:
        return Array(*self._display(node.elts, frame))

    _set = _list

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        values, exact = self._display(node.elts, frame)
        return tuple(values) if exact else UNKNOWN

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        table = Table({})
        for key_node, value_node in zip(node.keys, node.values):
            value = self.evaluate(value_node, frame)
            if key_node is None:
                table.exact = table.exact and isinstance(value, Table) and value.exact
                table.items.update(value.items if isinstance(value, Table) else {})
                continue
            key = self.evaluate(key_node, frame)
            if is_constant(key):
                table.items[key] = value
            else:
                table.exact = False
        return table

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return Function(node, frame, {})

    def _namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.evaluate(node.value, frame)
        frame.names[node.target.id] = value
        return value

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Value:
        inner = Frame(frame.module, {}, frame, "function")
        results = [self.evaluate(node.elt, inner) for _ in self._rounds(node.generators, inner, frame)]
        return Array(results, not inner.unsure)

    _setcomp = _listcomp
    _generatorexp = _listcomp

    def _dictcomp(self, node: ast.DictComp, frame: Frame) -> Value:
        inner = Frame(frame.module, {}, frame, "function")
        table = Table({})
        for _ in self._rounds(node.generators, inner, frame):
            key, value = self.evaluate(node.key, inner), self.evaluate(node.value, inner)
            if is_constant(key):
                table.items[key] = value
            else:
                inner.unsure += 1
        table.exact = not inner.unsure
        return table

    def _rounds(self, generators: list[ast.comprehension], frame: Frame, outer: Frame) -> Iterator[None]:
        """Once for each item that a comprehension surely takes; the frame is unsure where there may be others.

        The first iterable belongs to the block around the comprehension, which may be a class.
        """
        first, *rest = generators
        items = self.items(self.evaluate(first.iter, outer))
        if items is None or len(items) > _LONGEST:
            frame.unsure += 1
            return
        for item in items:
            self.bind(first.target, item, frame)
            tests = [truth(self.evaluate(test, frame)) for test in first.ifs]
            if False in tests:
                continue
            if None in tests:
                frame.unsure += 1
                continue
            if rest:
                yield from self._rounds(rest, frame, frame)
            else:
                yield

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        raise NotImplementedError


def _same(left: Value, right: Value) -> bool | None:
    for one, other in ((left, right), (right, left)):
        if one is None:
            if other is None:
                return True
            known = other is SPEC or is_constant(other)
            return (
                False if known or isinstance(other, (Module, Function, Class, Native, Array, Table, Version)) else None
            )
    if isinstance(left, bool) and isinstance(right, bool):
        return left is right
    if isinstance(left, (Module, Function, Class)) and isinstance(right, (Module, Function, Class)):
        return left is right
    return None
