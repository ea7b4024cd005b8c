"""Definitions, assignments, imports and calls of the simulated run."""

from __future__ import annotations

import ast
import builtins

from compatcheck.import_check._evaluating import Evaluating
from compatcheck.import_check._natives import SYS_MODULES
from compatcheck.import_check._values import (
    UNKNOWN,
    Array,
    Class,
    Frame,
    Function,
    Missing,
    Module,
    Namespace,
    Raised,
    Table,
    Undecided,
    Value,
    is_constant,
)

_DEEPEST = 25


class Return(Exception):
    """A ``return`` on its way out of a function."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Defining(Evaluating):
    """Needs `run` for the bodies of functions and classes."""

    depth = 0
    steps = 0

    def run(self, body: list[ast.stmt], frame: Frame) -> None:
        raise NotImplementedError

    def lookup(self, name: str, frame: Frame) -> Value:
        value = super().lookup(name, frame)
        if value is not UNKNOWN or self.depth or frame.kind == "function" or hasattr(builtins, name):
            return value
        holder: Frame | None = frame
        while holder is not None:
            if name in holder.names:
                return UNKNOWN
            holder = holder.outer
        module = frame.module
        if module.open or module.compiled or name in module.late or name[:2] == "__" or frame.unsure:
            return UNKNOWN
        raise Raised(NameError, Missing(module.name, name))

    def store(self, name: str, value: Value, frame: Frame) -> None:
        names = frame.module.names if name in frame.globals else frame.names
        unsure = frame.unsure or (self.shaky and names is frame.module.names and frame.kind != "module")
        names[name] = UNKNOWN if unsure and names.get(name, UNKNOWN) is not value else value

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            self.store(target.id, value, frame)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, UNKNOWN, frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = self.items(value) if isinstance(value, (tuple, Array)) else None
            plain = not any(isinstance(each, ast.Starred) for each in target.elts)
            parts = items if items is not None and plain and len(items) == len(target.elts) else None
            for index, each in enumerate(target.elts):
                self.bind(each, parts[index] if parts else UNKNOWN, frame)
        elif isinstance(target, ast.Attribute):
            holder = self.evaluate(target.value, frame)
            if isinstance(holder, Module):
                holder.names[target.attr] = UNKNOWN if frame.unsure or self.shaky else value
        elif isinstance(target, ast.Subscript):
            self._bind_item(self.evaluate(target.value, frame), self.evaluate(target.slice, frame), value, frame)

    def _bind_item(self, holder: Value, key: Value, value: Value, frame: Frame) -> None:
        unsure = bool(frame.unsure or self.shaky)
        if holder is SYS_MODULES:
            if isinstance(key, str):
                known = isinstance(value, Module) and not unsure
                self.modules[key] = value if known else Module(key, open_=True)
        elif isinstance(holder, Namespace):
            if isinstance(key, str):
                holder.module.names[key] = UNKNOWN if unsure else value
            else:
                self.open_up(holder.module)
        elif isinstance(holder, Table):
            holder.exact = holder.exact and is_constant(key) and not unsure
            if is_constant(key):
                holder.items[key] = value

    def _run_expr(self, node: ast.Expr, frame: Frame) -> None:
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value, frame)

    def _run_assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            self.bind(target, value, frame)

    def _run_annassign(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value, frame), frame)
        if frame.kind != "function":
            self._annotation(node.annotation, frame)

    def _run_augassign(self, node: ast.AugAssign, frame: Frame) -> None:
        if not isinstance(node.target, (ast.Name, ast.Attribute)):
            self.evaluate(node.value, frame)
            return
        reading = ast.Name(node.target.id, ast.Load()) if isinstance(node.target, ast.Name) else node.target
        old = self.evaluate(reading, frame)
        value = self.evaluate(node.value, frame)
        items = self.items(value)
        if isinstance(old, Array):
            old.items += items or []
            old.exact = old.exact and items is not None and not (frame.unsure or self.shaky)
        elif isinstance(old, tuple) and isinstance(value, tuple):
            self.bind(node.target, old + value, frame)
        elif isinstance(node.target, ast.Name):
            both = isinstance(old, str) and isinstance(value, str) and isinstance(node.op, ast.Add)
            self.bind(node.target, old + value if both else UNKNOWN, frame)

    def _run_import(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            module = self.load(alias.name)
            if alias.asname:
                self.store(alias.asname, module, frame)
            else:
                top = alias.name.partition(".")[0]
                self.store(top, self.modules.get(top, UNKNOWN), frame)

    def _run_importfrom(self, node: ast.ImportFrom, frame: Frame) -> None:
        base = node.module or ""
        if base == "__future__":
            return
        if node.level:
            package = frame.module.names.get("__package__")
            if not isinstance(package, str) or package.count(".") < node.level - 1:
                raise Undecided
            holder = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            base = f"{holder}.{base}" if base else holder
        module = self.load(base)
        for alias in node.names:
            if alias.name == "*":
                self.star(module, frame)
                continue
            if isinstance(module, Module) and module.state == "running" and alias.name not in module.names:
                module.borrowers.add(frame.module.name)
            value = self.member(module, alias.name, importing=True) if isinstance(module, Module) else self.unknown()
            self.store(alias.asname or alias.name, value, frame)

    def _run_global(self, node: ast.Global, frame: Frame) -> None:
        frame.globals.update(node.names)

    def _run_delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name) and not frame.unsure and frame.kind != "module":
                frame.names.pop(target.id, None)

    def _annotation(self, node: ast.expr | None, frame: Frame) -> None:
        if node is not None and frame.module.eager_annotations:
            self.evaluate(node, frame)

    def _run_functiondef(self, node: ast.FunctionDef, frame: Frame) -> None:
        decorators = [self.evaluate(each, frame) for each in node.decorator_list]
        arguments = node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip([each.arg for each in plain][len(plain) - len(arguments.defaults) :], arguments.defaults))
        defaults |= {each.arg: value for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value}
        values = {name: self.evaluate(value, frame) for name, value in defaults.items()}
        if frame.module.eager_annotations:
            extra = [each for each in (arguments.vararg, arguments.kwarg) if each]
            for each in (*plain, *arguments.kwonlyargs, *extra):
                self._annotation(each.annotation, frame)
            self._annotation(node.returns, frame)
        value: Value = Function(node, frame, values) if node.body else UNKNOWN
        for decorator in reversed(decorators):
            self.caller = frame
            value = self.call(decorator, [value], {})
        self.store(node.name, value, frame)

    _run_asyncfunctiondef = _run_functiondef

    def _run_classdef(self, node: ast.ClassDef, frame: Frame) -> None:
        decorators = [self.evaluate(each, frame) for each in node.decorator_list]
        bases = tuple(self.evaluate(each, frame) for each in node.bases)
        for keyword in node.keywords:
            self.evaluate(keyword.value, frame)
        inner = Frame(frame.module, {}, frame, "class")
        inner.unsure = frame.unsure
        self.run(node.body, inner)
        plain = not node.bases and not node.keywords and not decorators
        value: Value = Class(node.name, bases, inner.names, frame.module, plain)
        value.lines = (node.lineno, node.end_lineno or node.lineno)
        for decorator in reversed(decorators):
            self.caller = frame
            value = self.call(decorator, [value], {})
        self.store(node.name, value, frame)

    def call_function(self, function: Function, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        key = (tuple(arguments), tuple(sorted(keywords.items()))) if all(map(is_constant, arguments)) else None
        if key is not None and not all(map(is_constant, keywords.values())):
            key = None
        if function.memory is not None and key is not None and key in function.memory:
            return function.memory[key]
        names = _arguments(function, arguments, keywords)
        if names is None or self.depth >= _DEEPEST:
            return self.leaked([*arguments, *keywords.values()])
        value = self._called(function, names)
        if function.memory is not None and key is not None:
            function.memory[key] = value
        return value

    def _called(self, function: Function, names: dict[str, Value]) -> Value:
        frame = Frame(function.frame.module, names, function.frame, "function")
        shaky, caller = self.shaky, self.caller
        self.shaky += caller.unsure
        self.depth += 1
        outermost_steps = self.steps if self.depth > 1 else 0
        self.steps = outermost_steps
        try:
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body, frame)
            self.run(function.node.body, frame)
            value: Value = None
        except Return as left:
            value = left.value
        except Raised:
            if frame.returns:
                raise Undecided from None
            raise
        finally:
            self.depth -= 1
            self.shaky, self.caller = shaky, caller
        different = [each for each in frame.returns if not (is_constant(each) and each == value)]
        return UNKNOWN if different else value


def _arguments(function: Function, arguments: list[Value], keywords: dict[str, Value]) -> dict[str, Value] | None:
    """The local names of a call; None where it cannot be followed."""
    node = function.node
    spec = node.args
    plain = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    if isinstance(node, ast.FunctionDef) and _yields(node):
        return None
    names: dict[str, Value] = dict(function.defaults)
    names.update(zip(plain, arguments))
    if len(arguments) > len(plain) and not spec.vararg:
        return None
    if spec.vararg:
        names[spec.vararg.arg] = tuple(arguments[len(plain) :])
    accepted = {*plain, *(each.arg for each in spec.kwonlyargs)}
    names.update({name: value for name, value in keywords.items() if name in accepted})
    others = {name: value for name, value in keywords.items() if name not in accepted}
    if spec.kwarg:
        names[spec.kwarg.arg] = Table(dict(others))
    elif others:
        return None
    return names if accepted <= names.keys() else None


def _yields(node: ast.FunctionDef) -> bool:
    known = getattr(node, "yields", None)
    if known is None:
        known = any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node))
        node.yields = known  # type: ignore[attr-defined]
    return bool(known)
