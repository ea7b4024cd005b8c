"""Time limits that a busy machine does not shorten.

Standard library, Python 3.8+: the parent measures its children with it, a child the ranks that it starts.
"""

from __future__ import annotations

import os
import time
from typing import Callable, Tuple

CAP = 10
SAMPLE_SECONDS = 0.25

_HAS_PROC = os.path.exists("/proc/self/task")
_WANTS_TO_RUN = ("R", "D")


class Clock:
    """Counts the time that a process and its descendants had, in seconds.

    While one of their threads computes or waits for a processor or a disk, their processor time counts; while all
    sleep, as in a hang, wall time does. On an idle machine both are the same. Wall time counts where the system has
    no /proc, and a limit is over at the latest after CAP times as much of it. ``pid`` gives the process, 0 before it
    has begun.
    """

    def __init__(self, limit: float, pid: Callable[[], int]) -> None:
        self.limit = limit
        self.pid = pid
        self.counted = 0.0
        self.processor = 0.0
        self.begun = self.sampled = time.monotonic()

    def is_over(self) -> bool:
        now = time.monotonic()
        if not _HAS_PROC:
            self.counted = now - self.begun
        elif now - self.sampled >= min(SAMPLE_SECONDS, self.limit):
            self._sample(now)
        return self.counted >= self.limit or now - self.begun >= CAP * self.limit

    def _sample(self, now: float) -> None:
        elapsed, self.sampled = now - self.sampled, now
        wants, processor = _use(self.pid())
        spent, self.processor = max(processor - self.processor, 0.0), max(processor, self.processor)
        self.counted += min(elapsed, spent) if wants else elapsed


def is_runnable(pid: int) -> bool:
    """Whether a thread of the process or of a descendant computes or waits for a processor or a disk."""
    return _HAS_PROC and _use(pid)[0]


def _use(pid: int) -> Tuple[bool, float]:
    """Whether the process or a descendant wants to run, and the processor seconds of all of them so far."""
    wants, ticks, pending = False, 0, [pid] if pid else []
    while pending:
        folder = "/proc/%d" % pending.pop()
        try:
            ticks += sum(int(field) for field in _fields(folder)[11:15])
            for task in os.listdir(folder + "/task"):
                place = "%s/task/%s" % (folder, task)
                wants = wants or _fields(place)[0] in _WANTS_TO_RUN
                with open(place + "/children", encoding="ascii") as stream:
                    pending += map(int, stream.read().split())
        except (OSError, ValueError, IndexError):  # it has ended, or this kernel lists no children
            continue
    return wants, ticks / os.sysconf("SC_CLK_TCK")


def _fields(folder: str) -> "list[str]":
    """What stands in a process's or a thread's stat behind its name: the state first."""
    with open(folder + "/stat", encoding="utf-8", errors="replace") as stream:
        return stream.read().rpartition(")")[2].split()
