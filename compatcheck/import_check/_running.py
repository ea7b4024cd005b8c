"""Statements of the simulated run, in their order; a branch whose condition is unknown is run on approval."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import Any

from compatcheck.import_check._defining import Defining, Return
from compatcheck.import_check._finder import Finder
from compatcheck.import_check._values import (
    UNKNOWN,
    Frame,
    Module,
    Place,
    Raised,
    Undecided,
    Value,
    is_exception,
    truth,
)

_MOST_ROUNDS = 3000
_MOST_STEPS = 20_000
_PASSES_ERRORS_ON = (
    "catch_warnings",
    "no_grad",
    "device",
    "_disable_current_modes",
    "set_default_dtype",
    "open",
    "Lock",
)


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Simulation(Defining):
    """Runs the import-time part of modules without running any of their code."""

    def __init__(self, finder: Finder, version: str, on_module: Callable[[str], None] | None = None) -> None:
        super().__init__(finder, version, on_module)
        self.depth = 0
        self.steps = 0
        self.caller = Frame(Module("<user>"), {})
        self.handled: list[Raised] = []
        self.lazy_annotations = tuple(map(int, version.split(".")[:2])) >= (3, 14)

    def statement(self, text: str) -> Raised | None:
        """What one statement of a user raises for certain, or None."""
        frame = Frame(Module("<user>"), {"__name__": "__main__"})
        self.shaky = 0
        try:
            self.run(ast.parse(text).body, frame)
        except Raised as error:
            return error
        except (Undecided, RecursionError, Return, _Break, _Continue):
            return None
        return None

    def run_module(self, module: Module, tree: ast.Module) -> None:
        module.eager_annotations = not self.lazy_annotations and not any(map(_postpones_annotations, tree.body))
        depth, self.depth = self.depth, 0
        steps, self.steps = self.steps, 0
        handled, self.handled = self.handled, []
        try:
            self.run(tree.body, Frame(module, module.names))
        except (Return, _Break, _Continue):
            raise Undecided from None
        finally:
            self.depth, self.steps, self.handled = depth, steps, handled

    def run(self, body: list[ast.stmt], frame: Frame) -> None:
        for node in body:
            frame.line = node.lineno
            self.steps += bool(self.depth)
            if self.steps > _MOST_STEPS:
                raise Undecided
            try:
                handler = getattr(self, _handler_name(type(node).__name__), None)
                if handler:
                    handler(node, frame)
            except Raised as error:
                if frame.module.file and not any(place.module == frame.module.name for place in error.trail):
                    error.trail.append(Place(frame.module.name, frame.module.file, node.lineno))
                raise

    def maybe(self, body: list[ast.stmt], frame: Frame) -> None:
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
        except (_Break, _Continue):
            frame.unsure += 1
            declare(body, frame)
        finally:
            frame.unsure -= 1
        self.doubt += doubt
        self.import_doubt += doubt

    def guarded(self, node: ast.expr, frame: Frame) -> Value:
        frame.unsure += 1
        try:
            return self.evaluate(node, frame)
        except (Raised, Undecided):
            return self.unknown()
        finally:
            frame.unsure -= 1

    def _run_if(self, node: ast.If, frame: Frame) -> None:
        known = truth(self.evaluate(node.test, frame))
        if known is None:
            self.maybe(node.body, frame)
            self.maybe(node.orelse, frame)
        else:
            self.run(node.body if known else node.orelse, frame)

    def _run_for(self, node: ast.For, frame: Frame) -> None:
        items = self.items(self.evaluate(node.iter, frame))
        if items is None or len(items) > _MOST_ROUNDS:
            self.bind(node.target, UNKNOWN, frame)
            self.maybe([*node.body, *node.orelse], frame)
            return
        for item in items:
            self.bind(node.target, item, frame)
            try:
                self.run(node.body, frame)
            except _Break:
                return
            except _Continue:
                continue
        self.run(node.orelse, frame)

    def _run_while(self, node: ast.While, frame: Frame) -> None:
        if truth(self.evaluate(node.test, frame)) is not False:
            self.maybe(node.body, frame)

    def _run_match(self, node: Any, frame: Frame) -> None:
        self.evaluate(node.subject, frame)
        declare([node], frame)
        for case in node.cases:
            self.maybe(case.body, frame)

    def _run_with(self, node: ast.With, frame: Frame) -> None:
        names = []
        for item in node.items:
            value = self.evaluate(item.context_expr, frame)
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            names.append(getattr(called, "attr", getattr(called, "id", "")))
            if item.optional_vars is not None:
                self.bind(item.optional_vars, UNKNOWN if value is not None else None, frame)
        if all(name in _PASSES_ERRORS_ON for name in names):
            self.run(node.body, frame)
        else:
            try:
                self.run(node.body, frame)
            except (Raised, Undecided):
                declare(node.body, frame)
                self.unknown()

    def _run_try(self, node: ast.Try, frame: Frame) -> None:
        try:
            self._guarded_body(node, frame)
        finally:
            self.run(node.finalbody, frame)

    _run_trystar = _run_try

    def _guarded_body(self, node: ast.Try, frame: Frame) -> None:
        before = dict(frame.names)
        doubt, import_doubt = self.doubt, self.import_doubt
        only_imports = all(self._catches_imports_only(handler, frame) for handler in node.handlers)
        try:
            self.run(node.body, frame)
        except Raised as error:
            self._caught(node, frame, error)
            return
        except Undecided:
            if not node.handlers:
                raise
            declare([*node.body, *node.orelse], frame)
            for handler in node.handlers:
                self.maybe(handler.body, frame)
            return
        except Return:
            if self.import_doubt > import_doubt or (self.doubt > doubt and not only_imports):
                for handler in node.handlers:
                    self.maybe(handler.body, frame)
            raise
        if self.import_doubt > import_doubt or (self.doubt > doubt and not only_imports):
            for name, value in before.items():
                if frame.names.get(name) is not value:
                    frame.names[name] = UNKNOWN
            for handler in node.handlers:
                self.maybe(handler.body, frame)
        self.run(node.orelse, frame)

    def _catches_imports_only(self, handler: ast.ExceptHandler, frame: Frame) -> bool:
        if handler.type is None:
            return False
        names = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        wanted = ("ImportError", "ModuleNotFoundError", "PackageNotFoundError", "OptionalDependencyNotAvailable")
        return all(getattr(name, "attr", getattr(name, "id", "")) in wanted for name in names)

    def _caught(self, node: ast.Try, frame: Frame, error: Raised) -> None:
        """Run the handler that catches the error; raises it again where none does."""
        for handler in node.handlers:
            wanted = self.evaluate(handler.type, frame) if handler.type else BaseException
            catches = is_exception(error.kind, wanted)
            if catches is False:
                continue
            if handler.name:
                self.store(handler.name, UNKNOWN, frame)
            if catches is None:
                self.unknown()
                declare([*node.body, *node.orelse], frame)
                for each in node.handlers:
                    self.maybe(each.body, frame)
                return
            self.handled.append(error)
            try:
                self.run(handler.body, frame)
            finally:
                self.handled.pop()
            return
        raise error

    def _run_raise(self, node: ast.Raise, frame: Frame) -> None:
        cause = self.handled[-1] if self.handled else None
        if node.exc is None:
            if cause is None:
                raise Undecided
            raise cause
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        kind = self.evaluate(called, frame)
        text = self.guarded(node.exc.args[0], frame) if isinstance(node.exc, ast.Call) and node.exc.args else ""
        if (
            isinstance(called, ast.Name)
            and kind is UNKNOWN
            and cause is not None
            and not isinstance(node.exc, ast.Call)
        ):
            raise cause
        error = Raised(kind, cause.missing if cause else None, text if isinstance(text, str) else "")
        error.trail = list(cause.trail) if cause and cause.missing else []
        raise error

    def _run_assert(self, node: ast.Assert, frame: Frame) -> None:
        if truth(self.evaluate(node.test, frame)) is False:
            raise Raised(AssertionError)

    def _run_return(self, node: ast.Return, frame: Frame) -> None:
        raise Return(self.evaluate(node.value, frame) if node.value else None)

    def _run_break(self, node: ast.Break, frame: Frame) -> None:
        raise _Break

    def _run_continue(self, node: ast.Continue, frame: Frame) -> None:
        raise _Continue


@cache
def _handler_name(kind: str) -> str:
    return f"_run_{kind.lower()}"


def _postpones_annotations(node: ast.stmt) -> bool:
    if not isinstance(node, ast.ImportFrom) or node.module != "__future__":
        return False
    return any(alias.name == "annotations" for alias in node.names)


def declare(body: list[ast.stmt], frame: Frame) -> None:
    """Bind, as unknown, every name that statements bind which were left half-way."""
    for statement in body:
        for name in _bound(statement):
            if name == "*":
                frame.module.open = True
            else:
                frame.names.setdefault(name, UNKNOWN)


def _bound(statement: ast.stmt) -> tuple[str, ...]:
    """The names a statement may bind, kept with it: the same branches are passed over again and again."""
    known: tuple[str, ...] | None = getattr(statement, "bound", None)
    if known is None:
        names: dict[str, None] = {}
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] = None
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names[node.name] = None
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names.update((alias.asname or alias.name.partition(".")[0], None) for alias in node.names)
        known = tuple(names)
        statement.bound = known  # type: ignore[attr-defined]
    return known
