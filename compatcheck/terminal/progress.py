"""Progress of long work, on standard error so that the report stays clean.

It is drawn over itself on a terminal, with the time that is left as far as it can be told, and told in lines elsewhere.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from compatcheck.language import gettext as _
from compatcheck.terminal.screen import is_live

if TYPE_CHECKING:
    from rich.progress import Progress

_DOWNLOADING = re.compile(r"Downloading (\S+) \(([\d.]+)([KMG]iB)\)")
_WHERE = "Using Python "
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_BAR = 20

_silenced = threading.Event()


def silence() -> None:
    """Tell no progress of this process from now on."""
    _silenced.set()


def _is_drawn() -> bool:
    return is_live(sys.stderr) and not _silenced.is_set()


def _note(line: str) -> None:
    if not _silenced.is_set():
        print(line, file=sys.stderr, flush=True)


def _drawn(doing: str, *columns: Any, told_last: bool = True) -> Progress:
    """One row that is drawn over itself: what is done, these columns, and the rest of the width for what was told."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn
    from rich.table import Column

    told = [TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True))]
    console = Console(stderr=True)
    narrow = console.width < 3 * _BAR
    shown = [TextColumn(doing), *(columns[-1:] if narrow else columns), *(told if told_last else ())]
    return Progress(*shown, console=console, transient=True, expand=told_last)


@contextmanager
def probe_progress() -> Iterator[Callable[..., None]]:
    """A function to call with a probe, its stage and, where known, the seconds left for all probes."""
    if _is_drawn():
        from rich.progress import BarColumn, TimeElapsedColumn

        with _drawn(_("probing"), BarColumn(_BAR), TimeElapsedColumn()) as bar:
            task = bar.add_task("", total=None)

            def show(probe: str, stage: str, left: float | None = None) -> None:
                done = bar.tasks[0].elapsed or 0.0
                told = (
                    _("about {seconds} s left, ").format(seconds=f"{left:.0f}") if left is not None else ""
                ) + f"{probe}: {stage}"
                bar.update(task, description=told, completed=done, total=left and done + left)

            yield show
        return
    seen: set[str] = set()

    def note(probe: str, stage: str, left: float | None = None) -> None:
        if probe not in seen:
            seen.add(probe)
            _note(_("probing {probe}").format(probe=probe))

    yield note


@contextmanager
def bytes_progress(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function to call with bytes done, from any thread: a bar on a terminal, a line a quarter elsewhere."""
    if _is_drawn():
        from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with _drawn(doing, *columns, told_last=False) as bar:
            task = bar.add_task(doing, total=total)
            yield lambda count: bar.advance(task, count)
        return
    _note(f"{doing}, {total / 1e9:.1f} GB")
    lock, done = threading.Lock(), [0, 0]

    def note(count: int) -> None:
        with lock:
            done[0] += count
            quarter = min(4 * done[0] // max(total, 1), 4)
            if quarter > done[1]:
                done[1] = quarter
                _note(f"{doing}, {25 * quarter} %")

    yield note


@contextmanager
def imports_progress() -> Iterator[Callable[[str], None]]:
    """A function to call with each module whose imports are followed: a live line on a terminal, one line elsewhere."""
    if _is_drawn():
        from rich.progress import SpinnerColumn, TimeElapsedColumn

        with _drawn(_("following imports"), SpinnerColumn(), TimeElapsedColumn()) as bar:
            task = bar.add_task(_("about ten seconds in total"), total=None)
            yield lambda module: bar.update(task, description=module)
        return
    _note(_("following imports"))
    yield lambda module: None


@contextmanager
def reading_progress() -> Iterator[Callable[[str], None]]:
    """A function to call with each module that is read: a live line on a terminal from the first call on."""
    with ExitStack() as stack:
        bars: list[Any] = []

        def show(module: str) -> None:
            if not bars and _is_drawn():
                from rich.progress import SpinnerColumn, TimeElapsedColumn

                bar = stack.enter_context(_drawn(_("reading releases"), SpinnerColumn(), TimeElapsedColumn()))
                bar.add_task("", total=None)
                bars.append(bar)
            for bar in bars:
                bar.update(bar.task_ids[0], description=module)

        yield show


@contextmanager
def resolving_progress(seconds: float) -> Iterator[Callable[[], None]]:
    """A function to call whenever another set of versions is looked for, which ends after so many seconds."""
    count = 1
    if _is_drawn():
        from rich.progress import BarColumn, TimeElapsedColumn

        with _drawn(_("resolving"), BarColumn(_BAR), TimeElapsedColumn()) as bar:
            task = bar.add_task(f"{seconds:.0f} s at most", total=seconds)

            def show() -> None:
                nonlocal count
                count += 1
                done = bar.tasks[0].elapsed or 0.0
                told = f"version set {count}, at most {max(seconds - done, 0):.0f} s left"
                bar.update(task, description=told, completed=done)

            yield show
        return

    def note() -> None:
        nonlocal count
        count += 1
        if count == 2:
            _note(_("looking for versions that are clean"))

    yield note


@contextmanager
def building_progress() -> Iterator[Callable[[str], None]]:
    """A function to call with what uv tells of an installation: a bar of what is fetched on a terminal, else lines."""
    if _is_drawn():
        from rich.progress import BarColumn, TimeElapsedColumn, TimeRemainingColumn

        with _drawn(_("building"), BarColumn(_BAR), TimeElapsedColumn(), TimeRemainingColumn()) as bar:
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
            _note(_("building: {line}").format(line=line.strip()))

    yield note
