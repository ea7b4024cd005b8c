"""The child process: follows the imports of one environment, and reports on standard output as it goes.

Standard input holds a JSON object: ``path``, our own search path, ``target``, and ``model_folders``, whose code is
followed instead of what a training run imports. Each line of standard output is one, too:
``module``, which is now followed, or at the end ``failures``. The recursion limit, the stack and the garbage collector
are changed here, where nothing else runs.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from compatcheck.environment import Target
from compatcheck.files import limits
from compatcheck.import_check._entry_points import statements
from compatcheck.import_check._finder import Finder
from compatcheck.import_check._interpreter import Interpreter
from compatcheck.import_check._report import Failure, failure_of
from compatcheck.import_check._values import Module

_STACK = 256 << 20
_REMOTE = "transformers_modules"
_CODE = ("modeling_", "configuration_", "tokenization_", "processing_")


def main(order: dict[str, Any]) -> None:
    target = Target(**{**order["target"], "search_path": tuple(order["target"]["search_path"])})
    gc.disable()  # a collector that walks millions of syntax nodes again and again doubles the time
    sys.setrecursionlimit(limits.IMPORTS_FRAMES)
    threading.stack_size(_STACK)
    thread = threading.Thread(target=_report_failures, args=(target, tuple(order["model_folders"])))
    thread.start()
    thread.join()
    sys.exit("the thread ended early")


def _report_failures(target: Target, model_folders: tuple[str, ...]) -> None:
    _write("failures", [each._asdict() for each in _failures(target, model_folders)])
    os._exit(0)  # millions of syntax nodes need not be taken apart


def _write(event: str, content: object) -> None:
    sys.stdout.write(json.dumps({event: content}) + "\n")
    sys.stdout.flush()


def _failures(target: Target, model_folders: tuple[str, ...]) -> list[Failure]:
    finder = Finder(target)
    interpreter = Interpreter(finder, target.version, lambda module: _write("module", module))
    found: dict[tuple[object, ...], Failure] = {}
    lines = _model_imports(interpreter, model_folders) if model_folders else statements(finder.versions)
    for line in lines:
        error = interpreter.statement(line)
        failure = failure_of(error, line, finder) if error is not None else None
        if failure is not None:
            key = failure.file, failure.line, failure.module, failure.name
            first = found.get(key)
            found[key] = first._replace(statements=(*first.statements, line)) if first else failure
    return list(found.values())


def _model_imports(interpreter: Interpreter, folders: tuple[str, ...]) -> Iterator[str]:
    """One statement for each file of a model's own code, which transformers imports as a package of its own."""
    loaded = interpreter.modules.loaded
    remote = loaded[_REMOTE] = Module(_REMOTE, folders=("",))
    for number, folder in enumerate(folders):
        name = f"{_REMOTE}.model{number}"
        loaded[name] = remote.names[f"model{number}"] = Module(name, folders=(folder,))
        for file in sorted(os.listdir(folder)):
            if file.endswith(".py") and file.startswith(_CODE):
                yield f"import {name}.{file[:-3]}"
