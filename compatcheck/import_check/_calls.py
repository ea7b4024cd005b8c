"""Calls of the simulated run: functions written in Python are followed, and those that are known are computed."""

from __future__ import annotations

import ast
from typing import NamedTuple

from compatcheck.files import limits
from compatcheck.import_check._lazy import lazy_module
from compatcheck.import_check._methods import call_method
from compatcheck.import_check._modules import Modules
from compatcheck.import_check._natives import Native
from compatcheck.import_check._state import Program
from compatcheck.import_check._values import (
    UNKNOWN,
    Class,
    Frame,
    Function,
    Raised,
    Table,
    Undecided,
    Value,
    is_constant,
)


class Bound(NamedTuple):
    """A method of a value whose methods are known here."""

    value: Value
    name: str


class Return(Exception):
    """A ``return`` on its way out of a function."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Calls:
    """Calls functions, with the modules that they may change and the program that runs their bodies."""

    def __init__(self, modules: Modules, program: Program) -> None:
        self._modules = modules
        self._state = modules.state
        self._program = program

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        if isinstance(function, Native):
            return function.call(self._modules, arguments, keywords)
        if isinstance(function, Bound):
            return call_method(self._modules, function.value, function.name, arguments, keywords)
        if isinstance(function, Function):
            return self._call_function(function, arguments, keywords)
        if isinstance(function, Class) and function.name.endswith("LazyModule"):
            return lazy_module(function, arguments, keywords) or UNKNOWN
        return self._modules.leak([*arguments, *keywords.values()])

    def _call_function(self, function: Function, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        key = (tuple(arguments), tuple(sorted(keywords.items()))) if all(map(is_constant, arguments)) else None
        if key is not None and not all(map(is_constant, keywords.values())):
            key = None
        if function.memory is not None and key is not None and key in function.memory:
            return function.memory[key]
        names = _arguments(function, arguments, keywords)
        if names is None or self._state.depth >= limits.IMPORTS_CALLS_DEPTH:
            return self._modules.leak([*arguments, *keywords.values()])
        value = self._run_function(function, names)
        if function.memory is not None and key is not None:
            function.memory[key] = value
        return value

    def _run_function(self, function: Function, names: dict[str, Value]) -> Value:
        frame = Frame(function.frame.module, names, function.frame, "function")
        state = self._state
        shaky, caller = state.shaky, state.caller
        state.shaky += caller.unsure
        state.depth += 1
        if state.depth == 1:
            state.steps = 0
        try:
            if isinstance(function.node, ast.Lambda):
                return self._program.evaluate(function.node.body, frame)
            self._program.run(function.node.body, frame)
            value: Value = None
        except Return as left:
            value = left.value
        except Raised:
            if frame.returns:
                raise Undecided from None
            raise
        finally:
            state.depth -= 1
            state.shaky, state.caller = shaky, caller
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
