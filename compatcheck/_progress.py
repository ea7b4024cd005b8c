"""Progress of long work, on standard error so that the report stays clean."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_DOWNLOADING = re.compile(r"Downloading (\S+) \(([\d.]+)([KMG]iB)\)")
_WHERE = "Using Python "
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


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


@contextmanager
def resolving_progress() -> Iterator[Callable[[], None]]:
    """A function to call whenever another set of versions is looked for: a live count on a terminal, else a line."""
    count = 1
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("resolving") as status:

            def show() -> None:
                nonlocal count
                count += 1
                status.update(f"resolving, set {count}")

            yield show
        return

    def note() -> None:
        nonlocal count
        count += 1
        if count == 2:
            print("looking for versions that are clean", file=sys.stderr, flush=True)

    yield note


@contextmanager
def building_progress() -> Iterator[Callable[[str], None]]:
    """A function to call with what uv tells of an installation: a bar of what is fetched on a terminal, else lines."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        told_last = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True))
        columns = (TextColumn("building"), BarColumn(20), TimeElapsedColumn(), told_last)
        with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
            task = bar.add_task("", total=None)
            sizes: dict[str, float] = {}

            def show(line: str) -> None:
                told = _DOWNLOADING.match(line)
                if told:
                    sizes[told[1]] = float(told[2]) * _UNITS[told[3]]
                    bar.update(task, total=sum(sizes.values()))
                elif line.startswith(" Downloaded "):
                    bar.advance(task, sizes.get(line.split()[1], 0.0))
                if not line.startswith(_WHERE):
                    bar.update(task, description=line.strip())

            yield show
        return

    def note(line: str) -> None:
        if line.strip() and not line.startswith((" ", "+", "-", _WHERE)):
            print(f"building: {line.strip()}", file=sys.stderr, flush=True)

    yield note


@contextmanager
def asking_progress(total: int) -> Iterator[Callable[[str], None]]:
    """A function to call with each package that the index was asked for: a bar on a terminal, else one line."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("asking"), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda package: bar.update(task, description=package, advance=1)
        return
    print(f"asking the index for {total} packages", file=sys.stderr, flush=True)
    yield lambda package: None
