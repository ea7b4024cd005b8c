"""Names of the simulated run: what a block sees under one, and what it binds."""

from __future__ import annotations

import ast
import builtins

from compatcheck.import_check._natives import BUILTINS
from compatcheck.import_check._state import State
from compatcheck.import_check._values import UNKNOWN, Frame, Missing, Raised, Value


def lookup(state: State, name: str, frame: Frame) -> Value:
    """The value of a name; raises `Raised` where a block that surely runs uses one that nothing binds."""
    value = _visible(name, frame)
    if value is not UNKNOWN or state.depth or frame.kind == "function" or hasattr(builtins, name):
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


def _visible(name: str, frame: Frame) -> Value:
    scope: Frame | None = frame
    while scope is not None:
        if name in scope.names and name not in scope.globals and (scope is frame or scope.kind != "class"):
            return scope.names[name]
        scope = scope.outer
    if name in frame.module.names:
        return frame.module.names[name]
    return BUILTINS.get(name, UNKNOWN)


def store(state: State, name: str, value: Value, frame: Frame) -> None:
    names = frame.module.names if name in frame.globals else frame.names
    unsure = frame.unsure or (state.shaky and names is frame.module.names and frame.kind != "module")
    names[name] = UNKNOWN if unsure and names.get(name, UNKNOWN) is not value else value


def declare(body: list[ast.stmt], frame: Frame) -> None:
    """Bind, as unknown, every name that statements bind which were left half-way."""
    for statement in body:
        for name in _bound_names(statement):
            if name == "*":
                frame.module.open = True
            else:
                frame.names.setdefault(name, UNKNOWN)


def _bound_names(statement: ast.stmt) -> tuple[str, ...]:
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
