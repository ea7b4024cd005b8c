"""Expressions of the simulated run: what is known is computed, all else is `UNKNOWN`."""

from __future__ import annotations

import ast
import operator
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from packaging.version import Version

from compatcheck.files import limits
from compatcheck.import_check._calls import Bound, Calls
from compatcheck.import_check._modules import Modules
from compatcheck.import_check._natives import SYS_MODULES
from compatcheck.import_check._scope import lookup, store
from compatcheck.import_check._values import (
    UNKNOWN,
    Array,
    Class,
    Frame,
    Function,
    Known,
    Module,
    Namespace,
    Raised,
    Table,
    Undecided,
    Value,
    is_constant,
    items,
    truth,
)

_HARMLESS = ("logger", "logging", "warnings", "log", "LOGGER", "_logger")
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_BINARY: dict[type, Callable[[Any, Any], Any]] = {ast.Add: operator.add, ast.Mod: operator.mod, ast.Sub: operator.sub}
_VERSION_PARTS = (
    "base_version", "public", "local", "release", "major", "minor", "micro", "is_prerelease", "is_devrelease",
)  # fmt: skip


class Evaluator:
    """Computes expressions, and assigns to those that are targets."""

    def __init__(self, modules: Modules, calls: Calls) -> None:
        self._modules = modules
        self._state = modules.state
        self._calls = calls
        self._handlers: Mapping[type[ast.AST], Callable[[Any, Frame], Value]] = {
            ast.Attribute: self._attribute,
            ast.BinOp: self._binop,
            ast.BoolOp: self._boolop,
            ast.Call: self._call,
            ast.Compare: self._compare,
            ast.Constant: self._constant,
            ast.Dict: self._dict,
            ast.DictComp: self._dictcomp,
            ast.GeneratorExp: self._listcomp,
            ast.IfExp: self._ifexp,
            ast.JoinedStr: self._joinedstr,
            ast.Lambda: self._lambda,
            ast.List: self._list,
            ast.ListComp: self._listcomp,
            ast.Name: self._name,
            ast.NamedExpr: self._namedexpr,
            ast.Set: self._list,
            ast.SetComp: self._listcomp,
            ast.Slice: self._slice,
            ast.Subscript: self._subscript,
            ast.Tuple: self._tuple,
            ast.UnaryOp: self._unaryop,
        }

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        handler = self._handlers.get(type(node))
        return handler(node, frame) if handler else self._state.unknown()

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return node.value

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        return lookup(self._state, node.id, frame)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        return self.attribute(self.evaluate(node.value, frame), node.attr)

    def attribute(self, value: Value, name: str) -> Value:
        if isinstance(value, Module):
            return Namespace(value) if name == "__dict__" else self._modules.member(value, name, importing=False)
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
        return self._state.unknown(importing=False) if value is UNKNOWN else UNKNOWN

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
                listed = items(self.evaluate(argument.value, frame))
                complete = complete and listed is not None
                arguments += listed or []
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
        self._state.caller = frame
        if not complete:
            return self._modules.leak([*arguments, *keywords.values()])
        return self._calls.call(function, arguments, keywords)

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        result: bool | None = True
        for operation, right_node in zip(node.ops, node.comparators):
            right = self.evaluate(right_node, frame)
            answer = self._compare_values(operation, left, right)
            if answer is False:
                return False
            result = None if answer is None else result
            left = right
        return UNKNOWN if result is None else True

    def _compare_values(self, operation: ast.cmpop, left: Value, right: Value) -> bool | None:
        if isinstance(operation, (ast.Is, ast.IsNot)):
            same = _same(left, right)
            return None if same is None else same is isinstance(operation, ast.Is)
        if isinstance(operation, (ast.In, ast.NotIn)):
            inside = self._contains(left, right)
            return None if inside is None else inside is isinstance(operation, ast.In)
        known = (is_constant(left) and is_constant(right)) or (isinstance(left, Version) and isinstance(right, Version))
        if not known:
            return None
        try:
            return bool(_COMPARE[type(operation)](left, right))
        except TypeError:
            return None

    def _contains(self, item: Value, holder: Value) -> bool | None:
        if holder is SYS_MODULES:
            return True if item in self._modules.loaded else None
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
        frame.unsure += 1
        try:
            return self.evaluate(node, frame)
        except (Raised, Undecided):
            return self._state.unknown()
        finally:
            frame.unsure -= 1

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
            return self._modules.loaded.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
        if isinstance(value, Namespace) and isinstance(key, str):
            return value.module.names.get(key, UNKNOWN)
        try:
            if isinstance(value, Table) and (is_constant(key)):
                return value.items[key] if key in value.items else self._state.unknown()
            if isinstance(value, Array) and value.exact and isinstance(key, int):
                return value.items[key]
            if isinstance(value, (tuple, str)) and isinstance(key, (int, slice)):
                return value[key]
        except (IndexError, TypeError):
            return self._state.unknown()
        return self._state.unknown(importing=False) if value is UNKNOWN else UNKNOWN

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

    def _elements(self, nodes: list[ast.expr], frame: Frame) -> tuple[list[Value], bool]:
        values: list[Value] = []
        exact = True
        for node in nodes:
            if isinstance(node, ast.Starred):
                listed = items(self.evaluate(node.value, frame))
                exact = exact and listed is not None
                values += listed or []
            else:
                values.append(self.evaluate(node, frame))
        return values, exact

    def _list(self, node: ast.List | ast.Set, frame: Frame) -> Value:
        return Array(*self._elements(node.elts, frame))

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        values, exact = self._elements(node.elts, frame)
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
        results = [self.evaluate(node.elt, inner) for _ in self._iterations(node.generators, inner, frame)]
        return Array(results, not inner.unsure)

    def _dictcomp(self, node: ast.DictComp, frame: Frame) -> Value:
        inner = Frame(frame.module, {}, frame, "function")
        table = Table({})
        for _ in self._iterations(node.generators, inner, frame):
            key, value = self.evaluate(node.key, inner), self.evaluate(node.value, inner)
            if is_constant(key):
                table.items[key] = value
            else:
                inner.unsure += 1
        table.exact = not inner.unsure
        return table

    def _iterations(self, generators: list[ast.comprehension], frame: Frame, outer: Frame) -> Iterator[None]:
        """Once for each item that a comprehension surely takes; the frame is unsure where there may be others.

        The first iterable belongs to the block around the comprehension, which may be a class.
        """
        first, *rest = generators
        listed = items(self.evaluate(first.iter, outer))
        if listed is None or len(listed) > limits.IMPORTS_VALUE_LENGTH:
            frame.unsure += 1
            return
        for item in listed:
            self.bind(first.target, item, frame)
            tests = [truth(self.evaluate(test, frame)) for test in first.ifs]
            if False in tests:
                continue
            if None in tests:
                frame.unsure += 1
                continue
            if rest:
                yield from self._iterations(rest, frame, frame)
            else:
                yield

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            store(self._state, target.id, value, frame)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, UNKNOWN, frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            listed = items(value) if isinstance(value, (tuple, Array)) else None
            plain = not any(isinstance(each, ast.Starred) for each in target.elts)
            parts = listed if listed is not None and plain and len(listed) == len(target.elts) else None
            for index, each in enumerate(target.elts):
                self.bind(each, parts[index] if parts else UNKNOWN, frame)
        elif isinstance(target, ast.Attribute):
            holder = self.evaluate(target.value, frame)
            if isinstance(holder, Module):
                holder.names[target.attr] = UNKNOWN if frame.unsure or self._state.shaky else value
        elif isinstance(target, ast.Subscript):
            self._bind_item(self.evaluate(target.value, frame), self.evaluate(target.slice, frame), value, frame)

    def _bind_item(self, holder: Value, key: Value, value: Value, frame: Frame) -> None:
        unsure = bool(frame.unsure or self._state.shaky)
        if holder is SYS_MODULES:
            if isinstance(key, str):
                known = value if isinstance(value, Module) and not unsure else None
                self._modules.loaded[key] = known or Module(key, open_=True)
        elif isinstance(holder, Namespace):
            if isinstance(key, str):
                holder.module.names[key] = UNKNOWN if unsure else value
            else:
                self._modules.open_up(holder.module)
        elif isinstance(holder, Table):
            holder.exact = holder.exact and is_constant(key) and not unsure
            if is_constant(key):
                holder.items[key] = value


def _same(left: Value, right: Value) -> bool | None:
    for one, other in ((left, right), (right, left)):
        if one is None:
            if other is None:
                return True
            known = is_constant(other)
            return (
                False if known or isinstance(other, (Module, Function, Class, Known, Array, Table, Version)) else None
            )
    if isinstance(left, bool) and isinstance(right, bool):
        return left is right
    if isinstance(left, (Module, Function, Class)) and isinstance(right, (Module, Function, Class)):
        return left is right
    return None
