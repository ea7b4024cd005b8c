"""Temporary folders and child processes that are gone soon after this process is, even where it is killed.

A small process waits for the end of this one on a pipe that only this one holds: see `_remover.py`. It starts with the
first folder or child, and ends with us.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_REMOVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_remover.py")
_END_SECONDS = 1.0


@contextmanager
def temporary_folder(prefix: str, parent: str | None = None) -> Iterator[str]:
    """A private folder, removed with all that is in it. Raises OSError where none can be made."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True) as folder:
        _remover.tell("hold", "folder", folder)
        try:
            yield folder
        finally:
            _remover.tell("drop", "folder", folder)


def hold(pid: int) -> None:
    """Have the process, its group and whatever it starts ended if this process is killed."""
    _remover.tell("hold", "process", pid)


def drop(pid: int) -> None:
    """The process has ended."""
    _remover.tell("drop", "process", pid)


class _Remover:
    """The process that waits; Windows has neither its groups nor its signals, and does without."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0
        self.lock = threading.Lock()

    def tell(self, verb: str, kind: str, what: object) -> None:
        if sys.platform == "win32":
            return
        with self.lock:
            if self.owner != os.getpid():
                self._start()
            if self.process is not None and self.process.stdin is not None:
                with suppress(OSError):
                    self.process.stdin.write(json.dumps([verb, kind, what]).encode() + b"\n")
                    self.process.stdin.flush()

    def _start(self) -> None:
        """Once in each process; where it cannot be started, what is left is what a killed process leaves."""
        self.owner, self.process = os.getpid(), None
        with suppress(OSError):
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", _REMOVER],
                cwd=os.path.sep,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            atexit.register(self._end, self.process, self.owner)

    def _end(self, process: subprocess.Popen[bytes], owner: int) -> None:
        if owner == os.getpid() and process.stdin is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                process.stdin.close()
                process.wait(_END_SECONDS)


_remover = _Remover()
