"""What all parts of the interpreter share: how sure the simulated run is of itself, and where it is."""

from __future__ import annotations

import ast
from typing import Protocol

from compatcheck.import_check._values import UNKNOWN, Frame, Module, Raised, Value


class State:
    """Where the run is, and what is in doubt.

    ``doubt`` counts what may have raised anything, ``import_doubt`` what may have raised an ImportError; ``shaky``
    counts the calls around that may not be reached. ``depth`` and ``steps`` are of the calls that are followed,
    ``caller`` is the block of the innermost one, ``handled`` the exceptions whose handlers run.
    """

    def __init__(self) -> None:
        self.doubt = 0
        self.import_doubt = 0
        self.shaky = 0
        self.depth = 0
        self.steps = 0
        self.caller = Frame(Module("<user>"), {})
        self.handled: list[Raised] = []

    def unknown(self, importing: bool = True) -> Value:
        """The unknown result of something that may have raised an exception."""
        self.doubt += 1
        self.import_doubt += importing
        return UNKNOWN


class Program(Protocol):
    """What the parts ask of the interpreter that holds them: modules run code, and code imports modules."""

    def run_module(self, module: Module, tree: ast.Module) -> None: ...

    def run(self, body: list[ast.stmt], frame: Frame) -> None: ...

    def evaluate(self, node: ast.expr, frame: Frame) -> Value: ...

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value: ...
