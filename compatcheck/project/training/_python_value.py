"""The values of Python expressions and assignments, as far as they are literals; nothing is called."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from compatcheck.files import limits
from compatcheck.files.reading import OversizeError
from compatcheck.files.secrets import excerpt
from compatcheck.project.python_values import (
    NOT_RUN,
    OUT_OF_PROPORTION,
    Open,
    Reference,
    apply_sign,
    combine,
    compare,
    is_number,
    truth_of,
)

DOING = "reading the Python configuration"
_NUMBERS: dict[str, Callable[[Any], Any]] = {"int": int, "float": float}


class Node:
    """A value and where it is written; mappings and lists hold nodes, and names may share one."""

    __slots__ = ("file", "line", "value")

    def __init__(self, value: Any, file: str, line: int) -> None:
        self.value = value
        self.file = file
        self.line = line


class Evaluator:
    """The names that the statements of one file have assigned so far.

    ``incomplete`` says why names may be missing that the file brings in from elsewhere.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.names: dict[str, Node] = {}
        self.incomplete: str | None = None
        self._copies = 0

    def run(self, statement: ast.stmt) -> None:
        """Take one statement in; whatever is no assignment of literals leaves what it touches open."""
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._import(statement)
        elif isinstance(statement, ast.Assign):
            node = self.value(statement.value)
            for target in statement.targets:
                self._assign(target, node)
        elif isinstance(statement, ast.AnnAssign):
            if statement.value is not None:
                self._assign(statement.target, self.value(statement.value))
        elif isinstance(statement, ast.AugAssign):
            self._augment(statement)
        elif isinstance(statement, ast.If):
            self._branch(statement)
        elif isinstance(statement, ast.Expr):
            self._effect(statement.value)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.names[statement.name] = self._node(Reference(statement.name), statement)
        elif not isinstance(statement, ast.Pass):
            self._spoil(statement)

    def value(self, expression: ast.expr) -> Node:
        """The value of an expression; `Open` where it is not given literally."""
        if isinstance(expression, ast.Name):
            found = self.names.get(expression.id)
            if found is not None:
                return found if found.line else self._node(found.value, expression)
            why = self.incomplete or "the file does not define this name"
            return self._node(Open(f"{expression.id}: {why}"), expression)
        if isinstance(expression, (ast.Attribute, ast.Subscript)):
            return self._part(expression)
        if isinstance(expression, ast.IfExp):
            test = truth_of(self.value(expression.test).value)
            if test is not None:
                return self.value(expression.body if test else expression.orelse)
        return self._node(self._literal(expression), expression)

    def _literal(self, expression: ast.expr) -> Any:
        if isinstance(expression, ast.Constant):
            return self._constant(expression.value)
        if isinstance(expression, (ast.List, ast.Tuple)):
            return self._list(expression.elts)
        if isinstance(expression, ast.Dict):
            return self._mapping(zip(expression.keys, expression.values))
        if isinstance(expression, ast.Call):
            return self._call(expression)
        if isinstance(expression, ast.Set):
            return self._base_reference(expression)
        return self._computed(expression)

    def _computed(self, expression: ast.expr) -> object:
        if isinstance(expression, ast.BinOp):
            left, right = self.value(expression.left).value, self.value(expression.right).value
            if isinstance(expression.op, ast.Add) and type(left) is type(right) and isinstance(left, (list, str)):
                return (
                    self._copy(left + right)
                    if len(left) + len(right) <= limits.VALUE_LENGTH
                    else Open(OUT_OF_PROPORTION)
                )
            return combine(expression.op, left, right)
        if isinstance(expression, ast.UnaryOp):
            return apply_sign(expression.op, self.value(expression.operand).value)
        if isinstance(expression, (ast.Compare, ast.BoolOp)):
            return self._truth(expression)
        return Open(NOT_RUN)

    def _constant(self, value: Any) -> Any:
        if isinstance(value, str) and "{{" in value:
            return Open("mmengine replaces the value with another text")
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > limits.NUMBER:
            return Open(OUT_OF_PROPORTION)
        return value if isinstance(value, (str, int, float, bool, type(None))) else Open(NOT_RUN)

    def _list(self, parts: list[ast.expr]) -> object:
        result: list[Node] = []
        for part in parts:
            if isinstance(part, ast.Starred):
                inner = self.value(part.value).value
                if not isinstance(inner, list):
                    return Open(NOT_RUN)
                self._spend(len(inner))
                result.extend(inner)
            else:
                result.append(self.value(part))
            if len(result) > limits.VALUE_LENGTH:
                return Open(OUT_OF_PROPORTION)
        return result

    def _mapping(self, pairs: Any) -> Any:
        result: dict[str, Node] = {}
        for key, value in pairs:
            node = self.value(value)
            name = key if isinstance(key, str) or key is None else self.value(key).value
            if isinstance(name, str):
                result[name] = node
            elif name is None and key is None and isinstance(node.value, dict):
                self._spend(len(node.value))
                result.update(node.value)
            elif not isinstance(name, (int, float, bool)):
                return Open(NOT_RUN)
            if len(result) > limits.VALUE_LENGTH:
                return Open(OUT_OF_PROPORTION)
        return result

    def _call(self, call: ast.Call) -> object:
        """Only ``dict``, ``list``, ``tuple`` and the numbers' own types say what they make."""
        name = call.func.id if isinstance(call.func, ast.Name) and call.func.id not in self.names else None
        if name == "dict":
            return self._dict(call)
        if name in ("list", "tuple") and len(call.args) <= 1 and not call.keywords:
            given = self.value(call.args[0]).value if call.args else []
            return self._copy(given) if isinstance(given, list) else Open(NOT_RUN)
        if name in ("int", "float") and len(call.args) == 1 and not call.keywords:
            given = self.value(call.args[0]).value
            return _NUMBERS[name](given) if is_number(given) and abs(given) <= limits.NUMBER else Open(NOT_RUN)
        return Open(f"{excerpt(ast.unparse(call.func), 60)}(...) is called, but no code is run")

    def _dict(self, call: ast.Call) -> object:
        """The mapping that the arguments of a call of ``dict`` make."""
        given = self.value(call.args[0]).value if call.args else {}
        own = self._mapping((each.arg, each.value) for each in call.keywords)
        if len(call.args) > 1 or not isinstance(given, dict) or not isinstance(own, dict):
            return Open(NOT_RUN)
        self._spend(len(given))
        return {**given, **own}

    def _part(self, expression: ast.Attribute | ast.Subscript) -> Node:
        """The very part of a mapping or list that is named, so that a change to it is seen everywhere."""
        owner = self.value(expression.value).value
        name = expression.attr if isinstance(expression, ast.Attribute) else None
        if isinstance(owner, Reference) and name:
            return self._node(Reference(f"{owner.name}.{name}"), expression)
        key = name if isinstance(expression, ast.Attribute) else self.value(expression.slice).value
        part: Node | None = None
        if isinstance(owner, dict) and isinstance(key, str):
            part = owner.get(key)
        elif isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner):
            part = owner[key]
        if part is not None:
            return part
        return self._node(owner if isinstance(owner, Open) else Open(NOT_RUN), expression)

    def _base_reference(self, expression: ast.Set) -> Any:
        """``{{_base_.name}}``, which mmengine replaces before Python sees it."""
        inner = expression.elts[0] if len(expression.elts) == 1 else None
        if isinstance(inner, ast.Set) and len(inner.elts) == 1 and isinstance(inner.elts[0], ast.Attribute):
            return self.value(inner.elts[0]).value
        return Open(NOT_RUN)

    def _truth(self, expression: ast.Compare | ast.BoolOp) -> object:
        if isinstance(expression, ast.BoolOp):
            stops_at = isinstance(expression.op, ast.Or)
            value: Any = Open(NOT_RUN)
            for each in expression.values:
                value = self.value(each).value
                truth = truth_of(value)
                if truth is None:
                    return Open(NOT_RUN)
                if truth is stops_at:
                    return value
            return value
        if len(expression.ops) > 1:
            return Open(NOT_RUN)
        left, right = self.value(expression.left).value, self.value(expression.comparators[0]).value
        return compare(expression.ops[0], left, right)

    def _assign(self, target: ast.expr, node: Node) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = node
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = node.value if isinstance(node.value, list) and len(node.value) == len(target.elts) else None
            for i, each in enumerate(target.elts):
                self._assign(each, parts[i] if parts else self._node(Open(NOT_RUN), each))
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            owner = self.value(target.value).value
            key = target.attr if isinstance(target, ast.Attribute) else self.value(target.slice).value
            if isinstance(owner, dict) and isinstance(key, str):
                owner[key] = node
            else:
                self._spoil(target)

    def _augment(self, statement: ast.AugAssign) -> None:
        read: Any = ast.copy_location(
            ast.BinOp(_expression(statement.target), statement.op, statement.value), statement
        )
        node = self.value(read)
        if isinstance(statement.target, ast.Name):
            held = self.names.get(statement.target.id)
            if held is not None and isinstance(held.value, list) and isinstance(node.value, (list, Open)):
                held.value = node.value
                return
        self._assign(statement.target, node)

    def _branch(self, statement: ast.If) -> None:
        test = truth_of(self.value(statement.test).value)
        if test is None:
            self._spoil(statement)
            return
        for inner in statement.body if test else statement.orelse:
            self.run(inner)

    def _effect(self, expression: ast.expr) -> None:
        """A call for its effect: ``x.update(...)`` and ``x.append(...)`` are done, another leaves x open."""
        if isinstance(expression, ast.Constant):
            return
        if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
            owner = self.value(expression.func.value)
            if expression.func.attr == "update" and isinstance(owner.value, dict):
                plain = ast.copy_location(ast.Name("dict", ast.Load()), expression)
                made = self._call(ast.copy_location(ast.Call(plain, expression.args, expression.keywords), expression))
                if isinstance(made, dict):
                    owner.value.update(made)
                    return
            if expression.func.attr == "append" and isinstance(owner.value, list) and len(expression.args) == 1:
                owner.value.append(self.value(expression.args[0]))
                return
        self._spoil(expression)

    def _spoil(self, code: ast.AST) -> None:
        """Leave open what code that is not run may have set or changed; names that share a value see it too."""
        line = getattr(code, "lineno", 1)
        for inner in ast.walk(code):
            if isinstance(inner, ast.Name):
                held = self.names.get(inner.id)
                if held is not None and isinstance(held.value, (dict, list)):
                    held.value = Open(f"line {line}: code that is not run may change it")
                elif isinstance(inner.ctx, (ast.Store, ast.Del)):
                    self.names[inner.id] = Node(Open(f"line {line}: {NOT_RUN}"), self.path, line)
            elif isinstance(inner, (ast.Import, ast.ImportFrom)):
                self._import(inner)

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Imported names are no values of the file: they have the place where they are used."""
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                name = alias.name if alias.asname else alias.name.split(".")[0]
                self.names[alias.asname or name] = Node(Reference(name), self.path, 0)
            elif alias.name == "*":
                self.incomplete = f"the value may come from {statement.module}, which is not read"
            else:
                name = f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
                self.names[alias.asname or alias.name] = Node(Reference(name), self.path, 0)

    def _copy(self, value: Any) -> Any:
        self._spend(len(value))
        return value[:]

    def _spend(self, copies: int) -> None:
        """Names can make much of little text, so the parts that are copied are counted."""
        self._copies += copies
        if self._copies > limits.PYTHON_COPIES:
            raise OversizeError(DOING, self.path, "the values are far too large", "pass an ordinary file")

    def _node(self, value: object, at: ast.AST) -> Node:
        return Node(value, self.path, getattr(at, "lineno", 1))


def _expression(target: ast.expr) -> ast.expr:
    """The target of an assignment as the expression that reads it."""
    return ast.copy_location(ast.parse(ast.unparse(target), mode="eval").body, target)
