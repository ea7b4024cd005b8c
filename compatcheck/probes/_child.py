"""Measure one probe in the interpreter under test.

Run by path with the control folder as its only argument; standard library only, Python 3.8+.

In: ``request.json`` {protocol, probe, limit, request}; probe is the path of a Python file, limit is the
parent's in seconds: a child that outlives it ends itself. A probe may import its siblings in this
folder, ``compatcheck.probes._criterion`` and the like, and nothing else of compatcheck.
Out: ``events.jsonl``, one flushed JSON object a line, non-finite floats as strings:
``hello`` {protocol, pid, python, versions}; any number of ``stage`` {name, seconds} and ``row``
{row}; then one of ``result`` {measured, modules}, ``missing`` {what} (a package, memory), ``error`` {type, message,
traceback}. stdout and stderr belong to the libraries under test and carry no results.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import json
import math
import os
import platform
import re
import sys
import time
import traceback
import types
from typing import Any, Dict, List

PROTOCOL = 1
TRACEBACK_LINES = 12
IMPORTING = "import "
ORPHAN_SECONDS = 5.0


def main(control: str) -> int:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    _adopt(here)
    with open(os.path.join(control, "request.json"), encoding="utf-8") as stream:
        order = json.load(stream)
    faulthandler.dump_traceback_later(order["limit"] + ORPHAN_SECONDS, exit=True)
    with open(os.path.join(control, "events.jsonl"), "a", encoding="utf-8") as events:
        return _obey(order, _Reporter(events))


def _adopt(folder: str) -> None:
    """Stand in for the packages that hold this folder, without running what they import."""
    for name, path in (("compatcheck", []), ("compatcheck.probes", [folder])):
        package = types.ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


class _Reporter:
    """Appends events; ``seconds`` count from its creation."""

    def __init__(self, events: Any) -> None:
        self.events = events
        self.started = time.monotonic()
        self.last_stage = ""

    def send(self, event: str, **fields: Any) -> None:
        line = json.dumps(_plain({"event": event, **fields}), allow_nan=False)
        self.events.write(line + "\n")
        self.events.flush()

    def stage(self, name: str) -> None:
        self.last_stage = name
        self.send("stage", name=name, seconds=round(time.monotonic() - self.started, 3))


def _obey(order: Dict[str, Any], reporter: _Reporter) -> int:
    reporter.send(
        "hello",
        protocol=PROTOCOL,
        pid=os.getpid(),
        python=platform.python_version(),
        versions=_installed_versions(),
    )
    try:
        probe = _load("compatcheck_probe", order["probe"])
        for name, specifier in probe.NEEDS.items():
            _require(name, specifier, reporter)
        reporter.stage("measure")
        measured = probe.measure(order["request"], reporter.stage)
        if isinstance(measured, types.GeneratorType):
            measured = _collect(measured, reporter)
        reporter.send("result", measured=measured, modules=_loaded_modules(probe.NEEDS))
    except Exception as error:  # noqa: BLE001 - whatever happened here is what the parent has to hear
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            reporter.send("missing", what="not enough memory is free: " + _first_line(error))
        elif isinstance(error, ImportError) or reporter.last_stage.startswith(IMPORTING):
            reporter.send("missing", what=_first_line(error))
        else:
            tail = traceback.format_exc().splitlines()[-TRACEBACK_LINES:]
            reporter.send("error", type=type(error).__name__, message=_first_line(error), traceback=tail)
        return 1
    return 0


def _collect(rows: Any, reporter: _Reporter) -> Dict[str, Any]:
    """Rows are sent as they come, so that they survive a later crash."""
    collected: List[Any] = []
    while True:
        try:
            row = next(rows)
        except StopIteration as end:
            return {"rows": collected, **(end.value or {})}
        collected.append(row)
        reporter.send("row", row=row)


def _load(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file: " + path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _require(name: str, specifier: str, reporter: _Reporter) -> None:
    reporter.stage(IMPORTING + name)
    version = str(getattr(importlib.import_module(name), "__version__", ""))
    if version and not _satisfies(version, specifier):
        raise ImportError("%s %s is outside %s" % (name, version, specifier))


def _satisfies(version: str, specifier: str) -> bool:
    """Whether the release numbers fulfil ``>=``/``<`` clauses; pre-releases count as their release."""
    release = _release(version)
    for clause in specifier.split(","):
        operator, bound = clause[: -len(clause.lstrip("<>="))], _release(clause.lstrip("<>="))
        if operator == ">=" and release < bound or operator == "<" and release >= bound:
            return False
    return True


def _release(version: str) -> Any:
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(number) for number in match.group().split(".")] if match else []
    return tuple(numbers + [0] * (6 - len(numbers)))


def _installed_versions() -> Dict[str, str]:
    from importlib import metadata

    versions = {}
    for name in ("torch", "transformers", "accelerate", "peft", "numpy", "deepspeed", "bitsandbytes"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _loaded_modules(names: Any) -> Dict[str, Any]:
    return {
        name: {
            "version": str(getattr(sys.modules[name], "__version__", "")),
            "file": sys.modules[name].__file__,
        }
        for name in names
    }


def _first_line(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return error.name + " is not installed"
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _plain(value: Any) -> Any:
    """The value with non-finite floats as strings, as JSON has no word for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
