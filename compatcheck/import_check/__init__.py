"""Names that installed packages import and that the installed versions do not have.

The import-time statements of the modules that a training run loads are followed in their order, on their syntax trees
and without running any of their code: guards are taken as they would fall, lazy modules give up their names on demand,
and whatever is not known is left out.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from compatcheck.environment import Environment, Target
from compatcheck.import_check import _verdicts

_STACK = 256 << 20
_DEEPEST = 60_000
_REMOTE = "transformers_modules"


def with_imports(
    environment: Environment,
    target: Target,
    paths: Sequence[str] = (),
    *,
    examine: bool = False,
    on_module: Callable[[str], None] | None = None,
) -> Environment:
    """The environment with the imports that surely fail in it, where they are remembered; else ``examine`` finds them.

    Model folders among the paths, if examined, are held against the same environment.
    """
    if not examine:
        return environment.overlay(remembered(target))
    from compatcheck.project import model_files

    models = [path for path in paths if model_files.recognises(path)]
    return environment.overlay(collect(target, on_module, models))


def remembered(target: Target) -> Environment:
    """``unresolved_imports`` as they were found when this same environment was last examined; else unknown."""
    found = _verdicts.recall(target)
    if found is None:
        return Environment({}, {"unresolved_imports": "not followed; check --imports does"})
    return Environment({"unresolved_imports": found})


def collect(
    target: Target, on_module: Callable[[str], None] | None = None, model_folders: Sequence[str] = ()
) -> Environment:
    """``unresolved_imports``: every import of a training run that surely fails, with the line that fails.

    ``model_folders`` hold code of models' own that is to be imported as well. The result for the environment itself
    is kept until a distribution changes.
    """
    found = _verdicts.recall(target)
    if found is None:
        found = _examined(target, on_module, ())
        _verdicts.remember(target, found)
    if model_folders:
        seen = {(each["file"], each["line"]) for each in found}
        of_models = _examined(target, on_module, model_folders)
        found = [*found, *(each for each in of_models if (each["file"], each["line"]) not in seen)]
    return Environment({"unresolved_imports": found})


def _examined(
    target: Target, on_module: Callable[[str], None] | None, model_folders: Sequence[str]
) -> list[dict[str, Any]]:
    """The failures, found in a thread with a stack as deep as chains of imports are long."""
    from concurrent.futures import ThreadPoolExecutor

    stopped = threading.Event()

    def note(module: str) -> None:
        if stopped.is_set():
            raise SystemExit
        if on_module is not None:
            on_module(module)

    limit, size, collecting = sys.getrecursionlimit(), threading.stack_size(_STACK), gc.isenabled()
    gc.disable()  # a collector that walks millions of syntax nodes again and again doubles the time
    sys.setrecursionlimit(_DEEPEST)
    try:
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(_failures, target, note, model_folders)
            try:
                return future.result()
            finally:
                stopped.set()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
        if collecting:
            gc.enable()


def _failures(
    target: Target, on_module: Callable[[str], None] | None, model_folders: Sequence[str]
) -> list[dict[str, Any]]:
    from compatcheck.import_check._entry_points import statements
    from compatcheck.import_check._finder import Finder
    from compatcheck.import_check._report import record
    from compatcheck.import_check._running import Simulation

    finder = Finder(target)
    run = Simulation(finder, target.version, on_module)
    lines = _of_models(run, model_folders) if model_folders else statements(finder.versions)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:
        error = run.statement(line)
        told = record(error, line, finder) if error is not None else None
        if told is not None:
            first = found.setdefault((told["file"], told["line"], told["module"], told["name"]), told)
            first["statements"].append(line)
    return list(found.values())


def _of_models(run: Any, folders: Iterable[str]) -> Iterable[str]:
    """One statement for each file of a model's own code, which transformers imports as a package of its own."""
    from compatcheck.import_check._values import Module

    run.modules[_REMOTE] = Module(_REMOTE, folders=("",))
    for number, folder in enumerate(folders):
        name = f"{_REMOTE}.model{number}"
        run.modules[name] = Module(name, folders=(os.path.abspath(folder),))
        run.modules[_REMOTE].names[f"model{number}"] = run.modules[name]
        for file in sorted(os.listdir(folder)):
            if file.endswith(".py") and file.startswith(
                ("modeling_", "configuration_", "tokenization_", "processing_")
            ):
                yield f"import {name}.{file[:-3]}"
