"""The names that a module has without a statement that binds them, where its text tells them all."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from compatcheck.files.python_syntax import Function

Names = frozenset[str] | None
"""Some names; None for any."""
_NONE: frozenset[str] = frozenset()
_ALL_OF = frozenset({"dir", "vars"})


_CHANGES = frozenset({"update", "setdefault", "add", "append", "extend", "pop", "insert"})


def names_given(function: Function, tree: ast.Module) -> Names:
    """The names for which the ``__getattr__`` of a module may return."""
    tables = _unchanged(tree)
    placed = [*function.args.posonlyargs, *function.args.args]
    if len(placed) != 1 or function.decorator_list:
        return None
    paths = _Paths(placed[0].arg, tables)
    rest = paths.follow(function.body, None)
    return None if rest is None or paths.is_open else frozenset(paths.names) | rest


def _unchanged(tree: ast.Module) -> dict[str, ast.expr]:
    """What is bound just once in a module, and not changed by what stands there."""
    bound: dict[str, ast.expr] = {}
    stored: list[str] = []
    changed: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            bound[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            bound[node.target.id] = node.value
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.append(node.id)
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Name):
            is_method = isinstance(node, ast.Attribute) and node.attr in _CHANGES
            changed |= {node.value.id} if is_method or isinstance(node.ctx, ast.Store) else set()
    return {name: value for name, value in bound.items() if stored.count(name) == 1 and name not in changed}


class _Paths:
    """Follows a function by the names with which each statement is reached; ``names`` are those it returns for."""

    def __init__(self, parameter: str, tables: Mapping[str, ast.expr]) -> None:
        self.parameter, self.tables = parameter, tables
        self.looked_up: dict[str, Names] = {}
        self.names: set[str] = set()
        self.is_open = False

    def follow(self, body: Sequence[ast.stmt], names: Names) -> Names:
        """The names with which the end of these statements is reached."""
        for node in body:
            if names is not None and not names:
                return names
            names = self._after(node, names)
        return names

    def _after(self, node: ast.stmt, names: Names) -> Names:
        if isinstance(node, ast.Return):
            self._returned(_both(names, self._subscripted(node.value)))
            return _NONE
        if isinstance(node, ast.Raise):
            return _NONE
        if isinstance(node, ast.If):
            true, false = self._sides(node.test)
            return _either(self.follow(node.body, _both(names, true)), self.follow(node.orelse, _both(names, false)))
        if isinstance(node, ast.Try):
            ends = [self.follow([*node.body, *node.orelse], names)]
            ends += [self.follow(each.body, names) for each in node.handlers]
            return self.follow(node.finalbody, _either(*ends))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return names
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.looked_up[target.id] = self._got(node.value)
            return _both(names, self._subscripted(node.value))
        if any(isinstance(each, ast.Return) for each in ast.walk(node)):
            self._returned(names)
        return names

    def _returned(self, names: Names) -> None:
        if names is None:
            self.is_open = True
        else:
            self.names |= names

    def _sides(self, test: ast.expr) -> tuple[Names, Names]:
        """The names with which a test may be true, and with which it may be false."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            true, false = self._sides(test.operand)
            return false, true
        if isinstance(test, ast.BoolOp):
            sides = [self._sides(each) for each in test.values]
            if isinstance(test.op, ast.And):
                return _both(*(true for true, _ in sides)), _either(*(false for _, false in sides))
            return _either(*(true for true, _ in sides)), _both(*(false for _, false in sides))
        if isinstance(test, ast.Name):
            return self.looked_up.get(test.id), None
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None, None
        operator, other = test.ops[0], test.comparators[0]
        if isinstance(test.left, ast.Name) and isinstance(operator, (ast.Is, ast.IsNot)):
            found = self.looked_up.get(test.left.id)
            return (None, found) if isinstance(operator, ast.Is) else (found, None)
        if not self._is_parameter(test.left):
            return None, None
        found = _texts(other) if isinstance(operator, (ast.Eq, ast.NotEq)) else self._keys(other)
        return (found, None) if isinstance(operator, (ast.Eq, ast.In)) else (None, found)

    def _got(self, value: ast.expr) -> Names:
        """The names for which ``table.get(name)`` is something."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "get":
            return self._keys(value.func.value) if len(value.args) == 1 and self._is_parameter(value.args[0]) else None
        return None

    def _subscripted(self, value: ast.expr | None) -> Names:
        """The names for which ``table[name]`` raises nothing."""
        if isinstance(value, ast.Subscript) and self._is_parameter(value.slice):
            return self._keys(value.value)
        return None

    def _keys(self, table: ast.expr) -> Names:
        return _texts(self.tables.get(table.id) if isinstance(table, ast.Name) else table)

    def _is_parameter(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.parameter


class Bound(NamedTuple):
    """What ``globals()[...] = ...`` binds: these names, and every public name of these modules."""

    names: frozenset[str]
    modules: tuple[str, ...]


def bound_in_loops(tree: ast.Module, module_of: Callable[[ast.expr], str | None]) -> Bound | None:
    """What the loops of a module bind in ``globals()``; None where that is done elsewhere or not told."""
    stores = {id(each) for each in ast.walk(tree) if isinstance(each, ast.Subscript) and _is_store(each)}
    loops = _Loops(module_of)
    loops.block(tree.body, {})
    return Bound(frozenset(loops.names), tuple(loops.modules)) if stores <= loops.read else None


class _Loops:
    def __init__(self, module_of: Callable[[ast.expr], str | None]) -> None:
        self.module_of = module_of
        self.names: set[str] = set()
        self.modules: dict[str, None] = {}
        self.read: set[int] = set()

    def block(self, body: Iterable[ast.stmt], known: Mapping[str, frozenset[str] | str]) -> None:
        """Read statements in which variables are one of some texts, or the names of a module."""
        for node in body:
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                self.block(node.body, {**known, **self._each(node.target.id, node.iter)})
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Subscript) and _is_store(target):
                    self._stored(target, known)
                elif isinstance(target, ast.Name) and (texts := _spelled(node.value, known)) is not None:
                    known = {**known, target.id: texts}
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                for part in ("body", "orelse", "finalbody"):
                    self.block(getattr(node, part, ()), known)
                for handler in getattr(node, "handlers", ()):
                    self.block(handler.body, known)

    def _each(self, name: str, values: ast.expr) -> dict[str, frozenset[str] | str]:
        texts = _texts(values)
        if texts is not None:
            return {name: texts}
        if isinstance(values, ast.Call) and isinstance(values.func, ast.Name) and values.func.id in _ALL_OF:
            module = self.module_of(values.args[0]) if len(values.args) == 1 else None
            return {name: module} if module else {}
        return {}

    def _stored(self, target: ast.Subscript, known: Mapping[str, frozenset[str] | str]) -> None:
        variable = target.slice.id if isinstance(target.slice, ast.Name) else ""
        found = known.get(variable) or _spelled(target.slice, known)
        if isinstance(found, str):
            self.modules[found] = None
        elif found is not None:
            self.names |= found
        else:
            return
        self.read.add(id(target))


def _spelled(value: ast.expr, known: Mapping[str, frozenset[str] | str]) -> frozenset[str] | None:
    """The texts that a constant or an f-string with one of the variables may be."""
    if isinstance(value, ast.Constant):
        return frozenset({value.value}) if isinstance(value.value, str) else None
    if not isinstance(value, ast.JoinedStr):
        return None
    texts = {""}
    for part in value.values:
        inner = part.value if isinstance(part, ast.FormattedValue) and part.format_spec is None else part
        more = known.get(inner.id) if isinstance(inner, ast.Name) else _spelled(inner, {})
        if more is None or isinstance(more, str):
            return None
        texts = {text + each for text in texts for each in more}
    return frozenset(texts)


def _is_store(node: ast.Subscript) -> bool:
    called = node.value
    is_globals = isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == "globals"
    return is_globals and isinstance(node.ctx, ast.Store)


def _texts(node: ast.expr | None) -> Names:
    """The texts of a literal, or the keys of one that is a mapping."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return frozenset({node.value})
    listed = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", None)
    if listed is None:
        return None
    texts = [each.value for each in listed if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return frozenset(texts) if len(texts) == len(listed) else None


def _both(*each: Names) -> Names:
    known = [names for names in each if names is not None]
    return frozenset.intersection(*known) if known else None


def _either(*each: Names) -> Names:
    return None if any(names is None for names in each) else frozenset().union(*(names or () for names in each))
