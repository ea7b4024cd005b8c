"""What one input may do, and what becomes of one that does more: found, made small, kept with its traceback.

An input may take `SECONDS` of CPU time and `MIB` of memory. A fault is known by its kind and by the place in the
package where it was raised, so each is kept once.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from tools.fuzz import seeds, targets
from tools.fuzz.case import FOLDERS
from tools.fuzz.mutate import Mutator

SECONDS = 10.0
"""CPU time of one input; a wait, as for a pipe that nobody writes, ends after as long."""

MIB = 1024
"""Memory that one input may add."""

_WAIT = 8.0
"""Seconds after which an input that uses no processor is taken to wait for ever, as for a pipe that nobody writes."""

_IDLE = 0.02

_SECONDS_TO_MINIMISE = 20.0
_PACKAGE = os.path.dirname(os.path.abspath(targets.matrix.__file__)).removesuffix("matrix")


class TooLong(BaseException):
    """An input took longer than it may; not an `Exception`, so that no reader takes it for a fault of the file."""


class Fault(NamedTuple):
    """What an input did: the kind and place that it is known by, and the traceback."""

    kind: str
    place: str
    told: str

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.place}".replace("/", ".").replace(":", "-")


def fault_of(target: str, data: bytes) -> Fault | None:
    """Let the target read the input; None where all is well."""
    before = _peak()
    signal.setitimer(signal.ITIMER_REAL, _WAIT, _WAIT)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        targets.read(target, data)
    except (Exception, TooLong, RecursionError) as error:  # noqa: BLE001
        return Fault(type(error).__name__, _place(error), traceback.format_exc(limit=-40)[-6000:])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = (_peak() - before) >> 10
    return Fault("memory", target, f"{grown} MiB") if grown > MIB // 2 else None


def _peak() -> int:
    """KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _place(error: BaseException) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(_PACKAGE)]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename.removeprefix(_PACKAGE)}:{last.name}"


class _Clock:
    """Ends an input that has used its time, and one that waits; a busy machine makes neither."""

    def __init__(self) -> None:
        self.used = 0.0

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        before, self.used = self.used, time.process_time()
        if number == signal.SIGPROF or self.used - before < _IDLE:
            raise TooLong


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Work in an empty folder, in memory where there is such a disk, with the limits in force; as it was afterwards."""
    targets.known()  # compiled in a checkout, which is no input's doing
    here, environ = os.getcwd(), dict(os.environ)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    clock = _Clock()
    handlers = [(each, signal.signal(each, clock)) for each in (signal.SIGALRM, signal.SIGPROF)]
    disk = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=FOLDERS, dir=disk) as folder:
        for name in ("cache", "data", "work"):
            os.mkdir(os.path.join(folder, name))
        os.environ.update(
            XDG_CACHE_HOME=os.path.join(folder, "cache"), XDG_DATA_HOME=os.path.join(folder, "data"), HOME=folder
        )
        os.chdir(os.path.join(folder, "work"))
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (2 * MIB << 20), limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
            for number, handler in handlers:
                signal.signal(number, handler)
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environ)


class Findings:
    """The faults that were found, one folder for all targets; one that is there already is not kept again."""

    def __init__(self, folder: str, target: str) -> None:
        self.folder, self.target = os.path.abspath(folder), target
        os.makedirs(self.folder, exist_ok=True)
        self.new: list[Fault] = []

    def look(self, data: bytes) -> Fault | None:
        """Let the target read the input, and keep what is wrong with it."""
        fault = fault_of(self.target, data)
        if fault is not None and not os.path.exists(self._path(fault, "txt")):
            self.new.append(fault)
            small = minimised(self.target, data, fault)
            Path(self._path(fault, "input")).write_bytes(small)
            Path(self._path(fault, "txt")).write_text(fault.told, encoding="utf-8", errors="replace")
        return fault

    def _path(self, fault: Fault, ending: str) -> str:
        return os.path.join(self.folder, f"{self.target}-{fault.name[:150]}.{ending}")


def minimised(target: str, data: bytes, fault: Fault) -> bytes:
    """The input without what the fault does not need: halves, quarters and so on of its lines, then of its bytes."""
    deadline = time.monotonic() + _SECONDS_TO_MINIMISE
    if fault.kind in ("TooLong", "memory"):
        return data
    for parts in (data.splitlines(keepends=True), None):
        pieces = parts if parts is not None else [bytes((each,)) for each in data]
        size = max(1, len(pieces) // 2)
        while size and time.monotonic() < deadline:
            start = 0
            while start < len(pieces) and time.monotonic() < deadline:
                fewer = pieces[:start] + pieces[start + size :]
                again = fault_of(target, b"".join(fewer))
                if again is not None and (again.kind, again.place) == (fault.kind, fault.place):
                    pieces = fewer
                else:
                    start += size
            size //= 2
        data = b"".join(pieces)
    return data


class Ran(NamedTuple):
    """How many inputs a target read, in how many seconds, and what was found."""

    inputs: int
    seconds: float
    faults: tuple[Fault, ...]


def unguided(target: str, folder: str, *, inputs: int, seconds: float, seed: int, with_seeds: bool = True) -> Ran:
    """Mutate the seeds without regard to coverage; what `tools.fuzz` does where atheris is not installed."""
    draw = random.Random(seed)
    given = seeds.of(target)
    mutator, findings = Mutator(given), Findings(folder, target)
    done = 0
    with bounded():
        start = time.monotonic()
        for data in given if with_seeds else ():
            findings.look(data)
            done += 1
        while done < inputs and time.monotonic() - start < seconds:
            findings.look(mutator.changed(draw.choice(given), draw, targets.TARGETS[target].largest))
            done += 1
    return Ran(done, time.monotonic() - start, tuple(findings.new))


def guided(target: str, state: str, *, inputs: int, seconds: float, seed: int) -> None:
    """Let libFuzzer, through atheris, keep what reaches new code; does not return."""
    import atheris

    mutator = Mutator(seeds.of(target))
    largest = targets.TARGETS[target].largest
    findings = Findings(os.path.join(state, "findings"), target)
    corpus = os.path.abspath(os.path.join(state, "corpus", target))
    os.makedirs(corpus, exist_ok=True)
    for number, data in enumerate(seeds.of(target)):
        Path(corpus, f"seed-{number}").write_bytes(data)
    last = os.path.abspath(os.path.join(state, f"{target}.last"))
    count, started = 0, time.monotonic()

    def note() -> None:
        told = {"inputs": count, "seconds": round(time.monotonic() - started, 1), "faults": len(findings.new)}
        Path(f"{last}.json").write_text(json.dumps(told), encoding="utf-8")

    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        findings.look(data)
        if count % 256 == 0:
            note()

    def change(data: bytes, most: int, number: int) -> bytes:
        draw = random.Random(number)
        if draw.random() < 0.3:
            return bytes(atheris.Mutate(data, most))
        return mutator.changed(data, draw, min(most, largest))

    options = [f"-runs={inputs}", f"-max_total_time={int(seconds)}", f"-max_len={largest}", f"-seed={seed}"]
    options += [
        "-timeout=120",
        "-rss_limit_mb=4096",
        f"-artifact_prefix={last}-",
        "-print_final_stats=1",
        "-verbosity=1",
    ]
    with bounded():
        atheris.Setup([sys.argv[0], *options, corpus], one, custom_mutator=change)
        note()
        import atexit

        atexit.register(note)
        atheris.Fuzz()
