"""A simulated interpreter: it runs the import-time part of modules without running any of their code."""

from __future__ import annotations

import ast
from collections.abc import Callable

from compatcheck.import_check._calls import Calls, Return
from compatcheck.import_check._expressions import Evaluator
from compatcheck.import_check._finder import Finder
from compatcheck.import_check._modules import Modules
from compatcheck.import_check._natives import natives
from compatcheck.import_check._state import State
from compatcheck.import_check._statements import Break, Continue, Statements
from compatcheck.import_check._values import Frame, Module, Raised, Undecided, Value


class Interpreter:
    """Holds the parts: modules import, statements run, expressions are evaluated and functions called."""

    def __init__(
        self,
        finder: Finder,
        version: str,
        on_module: Callable[[str], None] | None = None,
        modules: type[Modules] = Modules,
    ) -> None:
        self._state = State()
        self.modules = modules(finder, natives(version), self._state, self, on_module)
        self._calls = Calls(self.modules, self)
        self._evaluator = Evaluator(self.modules, self._calls)
        self._statements = Statements(self.modules, self._calls, self._evaluator, version)

    def statement(self, text: str) -> Raised | None:
        """What one statement of a user raises for certain, or None."""
        frame = Frame(Module("<user>"), {"__name__": "__main__"})
        self._state.shaky = 0
        try:
            self.run(ast.parse(text).body, frame)
        except Raised as error:
            return error
        except (Undecided, RecursionError, Return, Break, Continue):
            return None
        return None

    def run_module(self, module: Module, tree: ast.Module) -> None:
        self._statements.run_module(module, tree)

    def run(self, body: list[ast.stmt], frame: Frame) -> None:
        self._statements.run(body, frame)

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        return self._evaluator.evaluate(node, frame)

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        return self._calls.call(function, arguments, keywords)
