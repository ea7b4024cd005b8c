"""Read what a Python script or notebook calls, and with which arguments, from its syntax tree; nothing is run."""

from __future__ import annotations

import ast
import os
import warnings

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.python_syntax import parse_code
from compatcheck.files.reading import OversizeError, read_text
from compatcheck.project.script_calls._command_line import PARSERS
from compatcheck.project.script_calls._commands import COMMANDS
from compatcheck.project.script_calls._heap import Scope
from compatcheck.project.script_calls._interpreter import Interpreter
from compatcheck.project.script_calls._library import LIBRARY
from compatcheck.project.script_calls._notebooks import code_of
from compatcheck.project.script_calls._state import DOING
from compatcheck.project.script_calls.calls import CommandLine, ScriptCalls

_MOST_MODULES = 8
_TABLE = {**LIBRARY, **PARSERS, **COMMANDS}


def read_calls(path: str, command: CommandLine | None = None) -> ScriptCalls:
    """The calls of a script, as its launch line starts it; without one, its own defaults hold.

    Raises `InputError` where the file cannot be read or parsed or is out of all proportion.
    """
    return read_calls_in(
        read_text(path, limits.NOTEBOOK_BYTES if _is_notebook(path) else limits.SCRIPT_BYTES), path, command
    )


def parse_script(path: str) -> ast.Module:
    """The syntax tree of a script or notebook, with the lines of the file; raises as `read_calls` does."""
    return _parse(read_text(path, limits.NOTEBOOK_BYTES if _is_notebook(path) else limits.SCRIPT_BYTES), path)


def read_calls_in(text: str, path: str, command: CommandLine | None = None) -> ScriptCalls:
    """As `read_calls`, of code in hand; ``path`` is the file that it came from, or stands for one."""
    tree = _parse(text, path)
    run = Interpreter(command, _TABLE, _Importer(path))
    run.note_words(text)
    try:
        run.run_module(tree, Scope(path), "__main__")
        run.run_uncalled()
    except RecursionError:
        raise OversizeError(DOING, path, "the content is nested too deeply", "pass an ordinary script") from None
    return ScriptCalls(tuple(run.calls), tuple(run.assignments), frozenset(run.imports))


def _is_notebook(path: str) -> bool:
    return path.endswith(".ipynb")


def _parse(text: str, path: str) -> ast.Module:
    """The syntax tree of a script or notebook, with the lines of the file."""
    code, lines = code_of(text, path) if _is_notebook(path) else (text, ())
    if lines and len(code) > limits.SCRIPT_BYTES:
        raise OversizeError(
            DOING, path, f"the code is larger than {limits.SCRIPT_BYTES >> 20} MiB", "pass an ordinary notebook"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = (None if lines else parse_code(code)) or ast.parse(code)
        for node in ast.walk(tree) if lines else ():
            if isinstance(node, (ast.stmt, ast.expr, ast.keyword, ast.arg, ast.excepthandler)):
                node.lineno = lines[node.lineno - 1]
        return tree
    except SyntaxError as error:
        line = lines[min(error.lineno, len(lines)) - 1] if lines and error.lineno else error.lineno
        seen = f"line {line}: {error.msg}" if line else error.msg
        raise InputError(DOING, path, seen, "pass a script for Python 3") from None
    except ValueError as error:
        raise InputError(DOING, path, str(error), "pass a script for Python 3") from None
    except (RecursionError, MemoryError):
        raise OversizeError(DOING, path, "the content is nested too deeply", "pass an ordinary script") from None


class _Importer:
    """The modules that stand beside a script, each read once; beside code that is no file stands none."""

    def __init__(self, path: str) -> None:
        self._is_file = os.path.isfile(path)
        self._folder = os.path.dirname(path)
        self._read: dict[str, Scope | None] = {}
        self._names: dict[str, frozenset[str]] = {}

    def module(self, run: Interpreter, name: str, level: int) -> Scope | None:
        """The names of a module of the user's own; None for any other."""
        if not self._is_file:
            return None
        folder = os.path.dirname(run.scope.path) if level else self._folder
        for _ in range(level - 1):
            folder = os.path.join(folder, os.pardir)
        first = name.partition(".")[0]
        if first and not {first, f"{first}.py"} & self._names_in(folder):
            return None
        stem = os.path.normpath(os.path.join(folder, *name.split(".")))
        if stem not in self._read:
            self._read[stem] = None
            path = next(filter(os.path.isfile, (f"{stem}.py", os.path.join(stem, "__init__.py"))), None)
            if path and sum(map(bool, self._read.values())) < _MOST_MODULES:
                self._read[stem] = _followed(run, path, name)
        return self._read[stem]

    def _names_in(self, folder: str) -> frozenset[str]:
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder or os.curdir))
            except OSError:
                self._names[folder] = frozenset()
        return self._names[folder]


def _followed(run: Interpreter, path: str, name: str) -> Scope | None:
    try:
        text = read_text(path, limits.SCRIPT_BYTES)
        tree = _parse(text, path)
    except InputError:
        return None
    run.note_words(text)
    scope = Scope(path)
    run.run_module(tree, scope, name)
    return scope
