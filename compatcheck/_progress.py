"""Progress of long work, on standard error so that the report stays clean."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def probe_progress() -> Iterator[Callable[..., None]]:
    """A function to call with a probe, its stage and, where known, the seconds left for all probes.

    It shows a bar on a terminal, a line a probe elsewhere.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("probing"),
            BarColumn(20),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=None)

            def show(probe: str, stage: str, left: float | None = None) -> None:
                done = bar.tasks[0].elapsed or 0.0
                told = f"{probe}: {stage}" + (f", about {left:.0f} s left" if left is not None else "")
                bar.update(task, description=told, completed=done, total=left and done + left)

            yield show
        return
    seen: set[str] = set()

    def note(probe: str, stage: str, left: float | None = None) -> None:
        if probe not in seen:
            seen.add(probe)
            print(f"probing {probe}", file=sys.stderr, flush=True)

    yield note


@contextmanager
def bytes_progress(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function to call with bytes done, from any thread: a bar on a terminal, a line a quarter elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = (TextColumn(doing), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(doing, total=total)
            yield lambda count: bar.advance(task, count)
        return
    print(f"{doing}, {total / 1e9:.1f} GB", file=sys.stderr, flush=True)
    lock, done = threading.Lock(), [0, 0]

    def note(count: int) -> None:
        with lock:
            done[0] += count
            quarter = min(4 * done[0] // max(total, 1), 4)
            if quarter > done[1]:
                done[1] = quarter
                print(f"{doing}, {25 * quarter} %", file=sys.stderr, flush=True)

    yield note


@contextmanager
def imports_progress() -> Iterator[Callable[[str], None]]:
    """A function to call with each module whose imports are followed: a live line on a terminal, one line elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("following imports") as status:
            yield lambda module: status.update(f"following imports: {module}")
        return
    print("following imports", file=sys.stderr, flush=True)
    yield lambda module: None
