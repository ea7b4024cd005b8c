"""Ends the processes and removes the folders that a killed process left; run by path, see `leftovers.py`.

In: lines on standard input, each ``["hold" | "drop", "process" | "folder", pid | path]`` in JSON. When they end, the
process that wrote them has ended, and what it still held is left over. Standard library only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

_TRIES = 20
_PAUSE_SECONDS = 0.05


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    held: dict[tuple[str, object], None] = {}
    for line in sys.stdin.buffer:
        with suppress(ValueError):
            verb, kind, what = json.loads(line)
            held[kind, what] = None
            if verb == "drop":
                del held[kind, what]
    _end([int(str(what)) for kind, what in held if kind == "process"])
    for kind, what in reversed(held):
        if kind == "folder":
            _remove(str(what))


def _end(pids: Iterable[int]) -> None:
    """End the processes, their groups, and what they started in sessions of its own."""
    for pid in [started for parent in pids for started in _family(parent)]:
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)


def _family(pid: int) -> Iterator[int]:
    """The process and all that it started, where the system tells."""
    yield pid
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as stream:
                for child in stream.read().split():
                    yield from _family(int(child))


def _remove(folder: str) -> None:
    """Again and again for a second: who writes there takes a moment to end."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    main()
