"""Measure probes in the interpreter under test.

Run by path, standard library only, Python 3.8+. With a control folder as its only argument it measures
one probe; with ``--warm FOLDER`` it is the parent of many (see `_fork_server.py`).

In: ``request.json`` {protocol, probe, limit, request, environ, command, fresh}; probe is the path of a Python file,
limit is the parent's in seconds: a child that outlives it ends itself. A probe may import its siblings
in this folder, ``compatcheck.probes._criterion`` and the like, and nothing else of compatcheck.
Out: ``events.jsonl``, one flushed JSON object a line, non-finite floats as strings:
``hello`` {protocol, pid, python, versions}; ``loaded`` {modules} with version and file of what the probe needs;
any number of ``stage`` {name, seconds} and ``row`` {row}; then one of ``result`` {measured, seconds}, ``missing``
{what} (a package, memory), ``unusable`` {what} (an installed package that does not work),
``error`` {type, message, traceback}. stdout and stderr belong to the libraries
under test and carry no results.
"""

from __future__ import annotations

import errno
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
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

if TYPE_CHECKING:
    from compatcheck.probes._criterion import Row

PROTOCOL = 1
TRACEBACK_LINES = 12
IMPORTING = "import "
ORPHAN_SECONDS = 5.0
NO_MEMORY = "can't allocate memory"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

not_importable: Dict[str, str] = {}
"""What a warm parent could not import, with the reason: a second try in its child would only hide it."""


class Unmet(ImportError):
    """A package cannot serve, for the reason that the message gives in full."""


def main(control: str) -> int:
    """Measure the probe that the control folder asks for; 0 where there is a result."""
    with open(os.path.join(control, "request.json"), encoding="utf-8") as stream:
        order = json.load(stream)
    faulthandler.dump_traceback_later(order["limit"] + ORPHAN_SECONDS, exit=True)
    with open(os.path.join(control, "events.jsonl"), "a", encoding="utf-8") as events:
        return _obey(order, Reporter(events))


def _stand_alone() -> None:
    """Keep our folder off the search path, and stand in for the packages that hold it without running them."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    for name, path in (("compatcheck", []), ("compatcheck.probes", [here])):
        package = types.ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


class Reporter:
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
        self.send("stage", name=name, seconds=self.seconds())

    def seconds(self) -> float:
        return round(time.monotonic() - self.started, 3)


def _obey(order: Dict[str, Any], reporter: Reporter) -> int:
    reporter.send(
        "hello",
        protocol=PROTOCOL,
        pid=os.getpid(),
        python=platform.python_version(),
        versions=_installed_versions(),
    )
    event = failure(lambda: _measure(order, reporter), reporter)
    if event:
        reporter.send(**event)
    return int(event is not None)


def _measure(order: Dict[str, Any], reporter: Reporter) -> None:
    probe = _load("compatcheck_probe", order["probe"])
    for name, specifier in probe.NEEDS.items():
        _require(name, specifier, reporter)
    reporter.send("loaded", modules=_loaded_modules(probe.NEEDS))
    reporter.stage("measure")
    measured = probe.measure(order["request"], reporter.stage)
    if isinstance(measured, types.GeneratorType):
        measured = _collect(measured, reporter)
    reporter.send("result", measured=measured, seconds=reporter.seconds())


def failure(work: Callable[[], None], reporter: Reporter) -> Optional[Dict[str, Any]]:
    """The event that tells why the work could not be done, None where it was."""
    from compatcheck.probes._criterion import Unusable

    try:
        work()
    except Exception as error:  # noqa: BLE001 - whatever happened here is what the parent has to hear
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or NO_MEMORY in str(error):
            return {"event": "missing", "what": "not enough memory is free: " + _first_line(error)}
        if (isinstance(error, OSError) and error.errno in NO_ROOM) or os.strerror(errno.ENOSPC) in str(error):
            return {"event": "missing", "what": "the temporary folder is full; free some space, or set TMPDIR"}
        if isinstance(error, Unusable):
            return {"event": "unusable", "what": str(error)}
        if isinstance(error, ImportError) or reporter.last_stage.startswith(IMPORTING):
            return {"event": "missing", "what": _import_failure(error, reporter.last_stage)}
        tail = traceback.format_exc().splitlines()[-TRACEBACK_LINES:]
        return {"event": "error", "type": type(error).__name__, "message": _first_line(error), "traceback": tail}
    return None


def _collect(rows: Any, reporter: Reporter) -> Row:
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
    sys.modules[name] = module  # transformers 4.57 to 5.5 looks there for the module of a model's class
    spec.loader.exec_module(module)
    return module


def _require(name: str, specifier: str, reporter: Reporter) -> None:
    reporter.stage(IMPORTING + name)
    if name in not_importable:
        raise Unmet(not_importable[name])
    version = str(getattr(importlib.import_module(name), "__version__", ""))
    if not version[:1].isdigit():
        version = _installed_version(name)
    if version and not _satisfies(version, specifier):
        raise Unmet("%s %s is outside %s" % (name, version, specifier))


def _installed_version(name: str) -> str:
    """The version by the metadata: trl 0.22.0 calls its own "unknown"."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


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


def _loaded_modules(names: Any) -> Row:
    return {
        name: {
            "version": str(getattr(sys.modules[name], "__version__", "")),
            "file": getattr(sys.modules[name], "__file__", None),
        }
        for name in names
    }


def _import_failure(error: BaseException, stage: str) -> str:
    """Why a package cannot be imported, with its name where the message leaves that out."""
    text = _first_line(error)
    if isinstance(error, (Unmet, ModuleNotFoundError)) or not stage.startswith(IMPORTING):
        return text
    return "%s cannot be imported: %s: %s" % (stage[len(IMPORTING) :], type(error).__name__, text)


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
    _stand_alone()
    if sys.argv[1] == "--warm":
        from compatcheck.probes import _fork_server

        _fork_server.serve(sys.argv[2])
    sys.exit(main(sys.argv[1]))
