"""Children forked from one process of the target that has imported what they share, so that each costs milliseconds.

Only on Linux: elsewhere a fork of a process with CUDA's or Apple's libraries is unsafe or impossible, and every probe
gets a new process. See `_fork_server.py` for the other side.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, TracebackType

from compatcheck.environment import Target
from compatcheck.probes import _process
from compatcheck.probes._clock import CAP
from compatcheck.probes._criterion import Request
from compatcheck.probes._fork_server import ENDED
from compatcheck.probes._process import OnStage, Trace
from compatcheck.probes._units import FOLDER

FORKS = sys.platform == "linux"
SHARED = ("torch", "transformers")
IMPORT_LIMIT = 120.0


def weight(unit: ModuleType) -> int:
    """Where a probe stands in a run: those that share fewer imports come before the parent has made more."""
    if getattr(unit, "FRESH", False) or getattr(unit, "WARM", False):
        return len(SHARED) + 1
    return sum(name in unit.NEEDS for name in SHARED)


class Children:
    """The children of one target, one at a time; closed, it leaves no process and no file.

    A package that kills or hangs the warm parent is remembered: every probe that needs it gets the trace of that.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.parent: _Parent | None = None
        self.lost: dict[str, Trace] = {}

    def __enter__(self) -> Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def attempt(
        self,
        probe: Path,
        unit: ModuleType,
        request: Request,
        limit: float,
        on_stage: OnStage | None = None,
    ) -> Trace:
        """Run a probe file in a fork of the warm parent, or in a new process where it asks for one.

        A probe that is ``WARM`` takes whatever the parent has imported.
        """
        if not FORKS:
            return _process.attempt(probe, self.target, request, limit, on_stage)
        shared = [name for name in SHARED if name in unit.NEEDS]
        fresh = getattr(unit, "FRESH", False) or not (shared or getattr(unit, "WARM", False))
        started = time.monotonic()
        for name in () if fresh else shared:
            lost = self.lost.get(name) or self._import(name, on_stage)
            if lost:
                self.lost[name] = lost
                return lost
        warming = time.monotonic() - started
        return self._living().attempt(probe, request, limit, on_stage, fresh=fresh)._replace(warming=warming)

    def _living(self) -> _Parent:
        if self.parent is None or self.parent.process.poll() is not None:
            self._close()
            self.parent = _Parent(self.target)
        return self.parent

    def _import(self, name: str, on_stage: OnStage | None) -> Trace | None:
        """What killed the parent when it imported the package, None where it lives."""
        trace = self._living().warm_up(name, on_stage)
        if trace:
            self._close()
        return trace

    def _close(self) -> None:
        if self.parent is not None:
            self.parent.close()
            self.parent = None


class _Parent:
    """The process that imports and forks."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.imported: set[str] = set()
        with contextlib.ExitStack() as opening:
            folder = opening.enter_context(_process.control_folder())
            command = [target.executable, "-B", str(FOLDER / "_child.py"), "--warm", str(folder)]
            self.process = _process.start(command, folder, stdin=subprocess.PIPE)
            self.opened = opening.pop_all()
        self.errors = _process.TailReader(self.process.stderr)
        self.events = _process.Events(folder)

    def warm_up(self, name: str, on_stage: OnStage | None) -> Trace | None:
        """Import a package there; gives the trace of a death or a hang, None otherwise."""
        if name in self.imported:
            return None
        heard = len(self.events.seen)
        self._order(f"import {IMPORT_LIMIT * CAP} {name}")
        answered = _process.wait(self.process, self.events, IMPORT_LIMIT, on_stage, until="imported")
        if answered and self.process.poll() is None:
            self.imported.add(name)
            return None
        self.process.kill()
        self.errors.thread.join(_process.GRACE_SECONDS)
        events = self.events.all()[heard:]
        return Trace(events, self.process.wait(), None if answered else IMPORT_LIMIT, self.errors.text())

    def attempt(self, probe: Path, request: Request, limit: float, on_stage: OnStage | None, *, fresh: bool) -> Trace:
        with _process.control_folder() as control:
            _process.write_order(control, probe, self.target, request, limit * CAP, fresh=fresh)
            child = _Forked(control, self.process)
            events = _process.Events(control)
            try:
                self._order(f"run {control}")
                finished = _process.wait(child, events, limit, on_stage)
            finally:
                _process.end(child)
                if child.poll() is None:
                    self.process.kill()
            return Trace(events.all(), child.poll(), None if finished else limit, self.errors.cut(ENDED))

    def close(self) -> None:
        with self.opened:
            if self.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    self.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_process.GRACE_SECONDS)
            _process.end(self.process)

    def _order(self, line: str) -> None:
        """A parent that is dead already is found so by whoever waits for its answer."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(os.fsencode(f"{line}\n"))
            self.process.stdin.flush()


class _Forked:
    """A child of the warm parent, which writes down the child's pid and status."""

    def __init__(self, control: Path, parent: subprocess.Popen[bytes]) -> None:
        self.control = control
        self.parent = parent

    @property
    def pid(self) -> int:
        return self._number("pid") or 0

    def poll(self) -> int | None:
        """The status; that of the parent where it died before it could tell."""
        status = self._number("status")
        if status is None and self.parent.poll() is not None:
            status = self._number("status")
            return self.parent.returncode if status is None else status
        return status

    def _number(self, name: str) -> int | None:
        with contextlib.suppress(FileNotFoundError):
            text = (self.control / name).read_text(encoding="ascii")
            return int(text) if text.endswith("\n") else None
        return None
