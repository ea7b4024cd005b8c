"""Statements of the simulated run, in their order; a branch whose condition is unknown is run on approval."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from compatcheck.files import limits
from compatcheck.import_check._calls import Calls, Return
from compatcheck.import_check._expressions import Evaluator
from compatcheck.import_check._modules import Modules
from compatcheck.import_check._scope import declare, store
from compatcheck.import_check._values import (
    UNKNOWN,
    Array,
    Class,
    Frame,
    Function,
    Module,
    Place,
    Raised,
    Undecided,
    Value,
    is_exception,
    items,
    truth,
)

_PASSES_ERRORS_ON = (
    "catch_warnings",
    "no_grad",
    "device",
    "_disable_current_modes",
    "set_default_dtype",
    "open",
    "Lock",
)


class Break(Exception):
    pass


class Continue(Exception):
    pass


class Statements:
    """Runs blocks of statements, each kind by a method of its own; other kinds do nothing."""

    def __init__(self, modules: Modules, calls: Calls, evaluator: Evaluator, version: str) -> None:
        self._modules = modules
        self._state = modules.state
        self._calls = calls
        self._evaluator = evaluator
        self._lazy_annotations = tuple(map(int, version.split(".")[:2])) >= (3, 14)
        self._handlers: Mapping[str, Callable[[Any, Frame], None]] = {
            "AnnAssign": self._annassign,
            "Assert": self._assert,
            "Assign": self._assign,
            "AsyncFunctionDef": self._functiondef,
            "AugAssign": self._augassign,
            "Break": self._break,
            "ClassDef": self._classdef,
            "Continue": self._continue,
            "Delete": self._delete,
            "Expr": self._expr,
            "For": self._for,
            "FunctionDef": self._functiondef,
            "Global": self._global,
            "If": self._if,
            "Import": self._import,
            "ImportFrom": self._importfrom,
            "Match": self._match,
            "Raise": self._raise,
            "Return": self._return,
            "Try": self._try,
            "TryStar": self._try,
            "While": self._while,
            "With": self._with,
        }

    def run_module(self, module: Module, tree: ast.Module) -> None:
        module.eager_annotations = not self._lazy_annotations and not any(map(_postpones_annotations, tree.body))
        depth, self._state.depth = self._state.depth, 0
        steps, self._state.steps = self._state.steps, 0
        handled, self._state.handled = self._state.handled, []
        try:
            self.run(tree.body, Frame(module, module.names))
        except (Return, Break, Continue):
            raise Undecided from None
        finally:
            self._state.depth, self._state.steps, self._state.handled = depth, steps, handled

    def run(self, body: list[ast.stmt], frame: Frame) -> None:
        for node in body:
            frame.line = node.lineno
            self._state.steps += bool(self._state.depth)
            if self._state.steps > limits.IMPORTS_STEPS:
                raise Undecided
            try:
                handler = self._handlers.get(type(node).__name__)
                if handler:
                    handler(node, frame)
            except Raised as error:
                if frame.module.file and not any(place.module == frame.module.name for place in error.trail):
                    error.trail.append(Place(frame.module.name, frame.module.file, node.lineno))
                raise

    def run_uncertain(self, body: list[ast.stmt], frame: Frame) -> None:
        """Run what may not run at all: nothing it raises is certain, and what it binds is unknown."""
        frame.unsure += 1
        doubt = 0
        try:
            self.run(body, frame)
        except (Raised, Undecided):
            doubt = 1
            declare(body, frame)
        except Return as left:
            frame.returns.append(left.value)
            frame.unsure += 1
            declare(body, frame)
        except (Break, Continue):
            frame.unsure += 1
            declare(body, frame)
        finally:
            frame.unsure -= 1
        self._state.doubt += doubt
        self._state.import_doubt += doubt

    def _if(self, node: ast.If, frame: Frame) -> None:
        known = truth(self._evaluator.evaluate(node.test, frame))
        if known is None:
            self.run_uncertain(node.body, frame)
            self.run_uncertain(node.orelse, frame)
        else:
            self.run(node.body if known else node.orelse, frame)

    def _for(self, node: ast.For, frame: Frame) -> None:
        listed = items(self._evaluator.evaluate(node.iter, frame))
        if listed is None or len(listed) > limits.IMPORTS_ROUNDS:
            self._evaluator.bind(node.target, UNKNOWN, frame)
            self.run_uncertain([*node.body, *node.orelse], frame)
            return
        for item in listed:
            self._evaluator.bind(node.target, item, frame)
            try:
                self.run(node.body, frame)
            except Break:
                return
            except Continue:
                continue
        self.run(node.orelse, frame)

    def _while(self, node: ast.While, frame: Frame) -> None:
        if truth(self._evaluator.evaluate(node.test, frame)) is not False:
            self.run_uncertain(node.body, frame)

    def _match(self, node: Any, frame: Frame) -> None:
        self._evaluator.evaluate(node.subject, frame)
        declare([node], frame)
        for case in node.cases:
            self.run_uncertain(case.body, frame)

    def _with(self, node: ast.With, frame: Frame) -> None:
        names = []
        for item in node.items:
            value = self._evaluator.evaluate(item.context_expr, frame)
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            names.append(getattr(called, "attr", getattr(called, "id", "")))
            if item.optional_vars is not None:
                self._evaluator.bind(item.optional_vars, UNKNOWN if value is not None else None, frame)
        if all(name in _PASSES_ERRORS_ON for name in names):
            self.run(node.body, frame)
        else:
            try:
                self.run(node.body, frame)
            except (Raised, Undecided):
                declare(node.body, frame)
                self._state.unknown()

    def _try(self, node: ast.Try, frame: Frame) -> None:
        try:
            self._try_body(node, frame)
        finally:
            self.run(node.finalbody, frame)

    def _try_body(self, node: ast.Try, frame: Frame) -> None:
        before = dict(frame.names)
        doubt, import_doubt = self._state.doubt, self._state.import_doubt
        only_imports = all(self._catches_imports_only(handler, frame) for handler in node.handlers)
        try:
            self.run(node.body, frame)
        except Raised as error:
            self._handle(node, frame, error)
            return
        except Undecided:
            if not node.handlers:
                raise
            declare([*node.body, *node.orelse], frame)
            for handler in node.handlers:
                self.run_uncertain(handler.body, frame)
            return
        except Return:
            if self._state.import_doubt > import_doubt or (self._state.doubt > doubt and not only_imports):
                for handler in node.handlers:
                    self.run_uncertain(handler.body, frame)
            raise
        if self._state.import_doubt > import_doubt or (self._state.doubt > doubt and not only_imports):
            for name, value in before.items():
                if frame.names.get(name) is not value:
                    frame.names[name] = UNKNOWN
            for handler in node.handlers:
                self.run_uncertain(handler.body, frame)
        self.run(node.orelse, frame)

    def _catches_imports_only(self, handler: ast.ExceptHandler, frame: Frame) -> bool:
        if handler.type is None:
            return False
        names = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        wanted = ("ImportError", "ModuleNotFoundError", "PackageNotFoundError", "OptionalDependencyNotAvailable")
        return all(getattr(name, "attr", getattr(name, "id", "")) in wanted for name in names)

    def _handle(self, node: ast.Try, frame: Frame, error: Raised) -> None:
        """Run the handler that catches the error; raises it again where none does."""
        for handler in node.handlers:
            wanted = self._evaluator.evaluate(handler.type, frame) if handler.type else BaseException
            catches = is_exception(error.kind, wanted)
            if catches is False:
                continue
            if handler.name:
                store(self._state, handler.name, UNKNOWN, frame)
            if catches is None:
                self._state.unknown()
                declare([*node.body, *node.orelse], frame)
                for each in node.handlers:
                    self.run_uncertain(each.body, frame)
                return
            self._state.handled.append(error)
            try:
                self.run(handler.body, frame)
            finally:
                self._state.handled.pop()
            return
        raise error

    def _raise(self, node: ast.Raise, frame: Frame) -> None:
        cause = self._state.handled[-1] if self._state.handled else None
        if node.exc is None:
            if cause is None:
                raise Undecided
            raise cause
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        kind = self._evaluator.evaluate(called, frame)
        text: Value = ""
        if isinstance(node.exc, ast.Call):
            text = self._evaluator.guarded(node.exc.args[0], frame) if node.exc.args else ""
        elif isinstance(called, ast.Name) and kind is UNKNOWN and cause is not None:
            raise cause
        error = Raised(kind, cause.missing if cause else None, text if isinstance(text, str) else "")
        error.trail = list(cause.trail) if cause and cause.missing else []
        raise error

    def _assert(self, node: ast.Assert, frame: Frame) -> None:
        if truth(self._evaluator.evaluate(node.test, frame)) is False:
            raise Raised(AssertionError)

    def _return(self, node: ast.Return, frame: Frame) -> None:
        raise Return(self._evaluator.evaluate(node.value, frame) if node.value else None)

    def _break(self, node: ast.Break, frame: Frame) -> None:
        raise Break

    def _continue(self, node: ast.Continue, frame: Frame) -> None:
        raise Continue

    def _expr(self, node: ast.Expr, frame: Frame) -> None:
        if not isinstance(node.value, ast.Constant):
            self._evaluator.evaluate(node.value, frame)

    def _assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self._evaluator.evaluate(node.value, frame)
        for target in node.targets:
            self._evaluator.bind(target, value, frame)

    def _annassign(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self._evaluator.bind(node.target, self._evaluator.evaluate(node.value, frame), frame)
        if frame.kind != "function":
            self._annotation(node.annotation, frame)

    def _augassign(self, node: ast.AugAssign, frame: Frame) -> None:
        if not isinstance(node.target, (ast.Name, ast.Attribute)):
            self._evaluator.evaluate(node.value, frame)
            return
        reading = ast.Name(node.target.id, ast.Load()) if isinstance(node.target, ast.Name) else node.target
        old = self._evaluator.evaluate(reading, frame)
        value = self._evaluator.evaluate(node.value, frame)
        added = items(value)
        if isinstance(old, Array):
            old.items += added or []
            old.exact = old.exact and added is not None and not (frame.unsure or self._state.shaky)
        elif isinstance(old, tuple) and isinstance(value, tuple):
            self._evaluator.bind(node.target, old + value, frame)
        elif isinstance(node.target, ast.Name):
            joined: Value = UNKNOWN
            if isinstance(old, str) and isinstance(value, str) and isinstance(node.op, ast.Add):
                joined = old + value
            self._evaluator.bind(node.target, joined, frame)

    def _import(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            module = self._modules.load(alias.name)
            if alias.asname:
                store(self._state, alias.asname, module, frame)
            else:
                top = alias.name.partition(".")[0]
                store(self._state, top, self._modules.loaded.get(top, UNKNOWN), frame)

    def _importfrom(self, node: ast.ImportFrom, frame: Frame) -> None:
        base = node.module or ""
        if base == "__future__":
            return
        if node.level:
            package = frame.module.names.get("__package__")
            if not isinstance(package, str) or package.count(".") < node.level - 1:
                raise Undecided
            holder = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            base = f"{holder}.{base}" if base else holder
        module = self._modules.load(base)
        for alias in node.names:
            if alias.name == "*":
                self._modules.import_star(module, frame)
                continue
            if isinstance(module, Module) and module.state == "running" and alias.name not in module.names:
                module.borrowers.add(frame.module.name)
            store(self._state, alias.asname or alias.name, self._import_member(module, alias.name), frame)

    def _import_member(self, module: Value, name: str) -> Value:
        if not isinstance(module, Module):
            return self._state.unknown()
        return self._modules.member(module, name, importing=True)

    def _global(self, node: ast.Global, frame: Frame) -> None:
        frame.globals.update(node.names)

    def _delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name) and not frame.unsure and frame.kind != "module":
                frame.names.pop(target.id, None)

    def _annotation(self, node: ast.expr | None, frame: Frame) -> None:
        if node is not None and frame.module.eager_annotations:
            self._evaluator.evaluate(node, frame)

    def _functiondef(self, node: ast.FunctionDef, frame: Frame) -> None:
        decorators = [self._evaluator.evaluate(each, frame) for each in node.decorator_list]
        arguments = node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip([each.arg for each in plain][len(plain) - len(arguments.defaults) :], arguments.defaults))
        defaults |= {each.arg: value for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value}
        values = {name: self._evaluator.evaluate(value, frame) for name, value in defaults.items()}
        if frame.module.eager_annotations:
            extra = [each for each in (arguments.vararg, arguments.kwarg) if each]
            for each in (*plain, *arguments.kwonlyargs, *extra):
                self._annotation(each.annotation, frame)
            self._annotation(node.returns, frame)
        value: Value = Function(node, frame, values) if node.body else UNKNOWN
        for decorator in reversed(decorators):
            self._state.caller = frame
            value = self._calls.call(decorator, [value], {})
        store(self._state, node.name, value, frame)

    def _classdef(self, node: ast.ClassDef, frame: Frame) -> None:
        decorators = [self._evaluator.evaluate(each, frame) for each in node.decorator_list]
        bases = tuple(self._evaluator.evaluate(each, frame) for each in node.bases)
        for keyword in node.keywords:
            self._evaluator.evaluate(keyword.value, frame)
        inner = Frame(frame.module, {}, frame, "class")
        inner.unsure = frame.unsure
        self.run(node.body, inner)
        plain = not node.bases and not node.keywords and not decorators
        lines = node.lineno, node.end_lineno or node.lineno
        value: Value = Class(node.name, bases, inner.names, frame.module, plain, lines)
        for decorator in reversed(decorators):
            self._state.caller = frame
            value = self._calls.call(decorator, [value], {})
        store(self._state, node.name, value, frame)


def _postpones_annotations(node: ast.stmt) -> bool:
    if not isinstance(node, ast.ImportFrom) or node.module != "__future__":
        return False
    return any(alias.name == "annotations" for alias in node.names)
