"""Build real stacks, import them, and compare what happened with what the static import check said beforehand.

    python -m tools.ground_truth.imports [--folder DIR] [--keep] [--limit SECONDS] [NAME...]

Needs uv, the package index and some GB of disk. As soon as a stack is done it prints the statements that failed, those
that were told, and the alarms that were false; the exit status is 1 where there was one. A stack that cannot be built,
or takes longer than the limit, is named and passed over.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

from tools.ground_truth._stacks import build, parsed, parser_of

_IMPORTER = """
import json, os, signal, sys, traceback
try:
    import torch
except BaseException:
    pass
results = {}
for statement in json.loads(sys.argv[1]):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(2, 1)
        signal.alarm(120)
        try:
            exec(statement, {"__name__": "user"})
            said = None
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            said = {"type": type(error).__name__, "text": str(error)[:400],
                    "at": "%s:%s" % (frames[-1].filename, frames[-1].lineno)}
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        raw = stream.read()
    _, status = os.waitpid(child, 0)
    results[statement] = json.loads(raw) if raw else {"type": "Crash", "text": "status %s" % status, "at": ""}
print(json.dumps(results))
"""


def imported(python: Path, statements: list[str], ends: float) -> dict[str, Any]:
    """What each statement raised when it was really run, each in a process of its own; None where nothing."""
    command = [str(python), "-c", _IMPORTER, json.dumps(statements)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ends - time.monotonic())
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


def compare(name: str, folder: Path, ends: float) -> tuple[int, int, int, int]:
    """Hits, misses, false alarms and agreed successes for one stack, each failure in a line of its own."""
    from compatcheck import import_check
    from compatcheck.import_check._entry_points import statements
    from compatcheck.installed.collect import collect
    from compatcheck.installed.target import find_target

    def in_time(module: str) -> None:
        if time.monotonic() > ends:
            raise TimeoutError(module)

    target = find_target(str(build(name, folder, ends)), {})
    shutil.rmtree(folder / name / "notes", ignore_errors=True)
    lines = list(statements(collect(target).facts["distributions"]))
    began = time.process_time()
    with mock.patch.dict(os.environ, XDG_CACHE_HOME=str(folder / name / "notes")):
        found = import_check.collect(target, in_time).facts["unresolved_imports"]
    seconds = time.process_time() - began
    told = {line: each for each in found for line in each["statements"]}
    real = imported(Path(target.executable), lines, ends)
    counts = [0, 0, 0, 0]
    for line in lines:
        kind = (0 if line in told else 1) if real[line] else (2 if line in told else 3)
        counts[kind] += 1
        if kind != 3:
            happened = "{type}: {text:.160} ({at})".format(**real[line]) if real[line] else "nothing"
            asked = "{module}.{name} ({file}:{line})".format(**told[line]) if line in told else "nothing"
            print(f"    {('hit', 'miss', 'FALSE')[kind]:6}{line}\n           told {asked}; happened {happened}")
    hits, misses, false, agreed = counts
    print(f"{name}: {hits} told, {misses} missed, {false} false, {agreed} fine, in {seconds:.1f} s", flush=True)
    return hits, misses, false, agreed


def main() -> int:
    options = parsed(parser_of(__doc__))
    folder = options.folder
    sums, passed_over = [0, 0, 0, 0], 0
    for name in options.names:
        try:
            counts = compare(name, folder, time.monotonic() + options.limit)
            sums = [before + count for before, count in zip(sums, counts)]
        except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
            passed_over += 1
            why = f"{error}" if isinstance(error, RuntimeError) else f"it takes longer than {options.limit:.0f} s"
            print(f"{name}: passed over: {why}", flush=True)
        if not options.keep:
            shutil.rmtree(folder / name, ignore_errors=True)
    print("in all: {} told, {} missed, {} false, {} fine".format(*sums) + f"; {passed_over} stacks passed over")
    return 1 if sums[2] else 0


if __name__ == "__main__":
    sys.exit(main())
