"""Progress of long work, on standard error so that the report stays clean.

It is drawn over itself on a terminal, with the time that is left as far as it can be told, and told in lines elsewhere.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from compatcheck.language import gettext as _
from compatcheck.terminal.cells import clipped, visible
from compatcheck.terminal.messages import one_line
from compatcheck.terminal.screen import is_live, screen

_DOWNLOADING = re.compile(r"Downloading (\S+) \(([\d.]+)([KMG]iB)\)")
_WHERE = "Using Python "
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_BAR = 20
_SPINNER = "|/-\\"
_REDRAWN_EVERY = 0.1
_UNNOTICED_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0
_ERASE = "\r\x1b[2K"

_silenced = threading.Event()


def silence() -> None:
    """Tell no progress of this process from now on."""
    _silenced.set()


def _is_drawn() -> bool:
    return is_live(sys.stderr) and not _silenced.is_set()


def _note(line: str) -> None:
    if not _silenced.is_set():
        print(one_line(line), file=sys.stderr, flush=True)


_live: list[_Row] = []
"""The row that is drawn at present, if there is one."""
_writing = threading.RLock()


@contextmanager
def above() -> Iterator[None]:
    """Print above the row that is drawn, which comes again below."""
    with _writing:
        if _live:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
        yield


class _Row:
    """What a row shows: ``text`` last, and ``done`` of ``total`` as a bar where the total is known."""

    def __init__(self, doing: str, text: str = "", total: float | None = None) -> None:
        self.doing, self.text, self.done, self.total = doing, text, 0.0, total
        self._start = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._start

    def draw(self) -> None:
        """Over what was drawn before, at most as wide as the terminal."""
        width = screen(sys.stderr).width - 1
        seconds = int(self.seconds())
        parts = [self.doing]
        if width >= 3 * _BAR:
            parts.append(self._bar())
        parts += [f"{seconds // 60}:{seconds % 60:02}", visible(self.text)]
        with _writing:
            sys.stderr.write(f"{_ERASE}{clipped(' '.join(parts), width)}")
            sys.stderr.flush()

    def _bar(self) -> str:
        if not self.total:
            return _SPINNER[int(self.seconds() / _REDRAWN_EVERY) % len(_SPINNER)]
        full = int(_BAR * min(self.done / self.total, 1.0))
        return f"[{'=' * full}{' ' * (_BAR - full)}]"


@contextmanager
def _drawn(row: _Row) -> Iterator[_Row]:
    """Draw the row ten times a second until the work ends, and then remove it."""
    ended = threading.Event()

    def redraw() -> None:
        row.draw()
        while not ended.wait(_REDRAWN_EVERY):
            row.draw()

    drawing = threading.Thread(target=redraw, daemon=True)
    _live.append(row)
    drawing.start()
    try:
        yield row
    finally:
        ended.set()
        drawing.join()
        with above():
            _live.remove(row)


@contextmanager
def probe_progress() -> Iterator[Callable[..., None]]:
    """A function to call with a probe, its stage and, where known, the seconds left for all probes."""
    if _is_drawn():
        with _drawn(_Row(_("probing"))) as row:

            def show(probe: str, stage: str, left: float | None = None) -> None:
                row.done = row.seconds()
                row.total = left and row.done + left
                row.text = f"{probe}: {stage}"
                if left is not None:
                    row.text = _("about {seconds} s left, ").format(seconds=f"{left:.0f}") + row.text

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
    lock, done = threading.Lock(), [0, 0]
    if _is_drawn():
        with _drawn(_Row(doing, total=total)) as row:

            def advance(count: int) -> None:
                with lock:
                    row.done += count
                    speed = row.done / max(row.seconds(), _REDRAWN_EVERY)
                    seconds = f"{(total - row.done) / max(speed, 1.0):.0f}"
                    left = _("about {seconds} s left, ").format(seconds=seconds)
                    row.text = f"{left}{row.done / 1e9:.1f} / {total / 1e9:.1f} GB, {speed / 1e6:.0f} MB/s"

            yield advance
        return
    _note(f"{doing}, {total / 1e9:.1f} GB")

    def note(count: int) -> None:
        with lock:
            done[0] += count
            quarter = min(4 * done[0] // max(total, 1), 4)
            if quarter > done[1]:
                done[1] = quarter
                _note(f"{doing}, {25 * quarter} %")

    yield note


@contextmanager
def late_progress(doing: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """A function to call with the share done, which shows nothing of short work.

    A bar on a terminal after two seconds; elsewhere, after five, a line per quarter of a known total.
    """
    row, quarter = _Row(doing, total=total), 0
    with ExitStack() as stack:
        is_shown = False

        def advance(count: float) -> None:
            nonlocal quarter, is_shown
            row.done += count
            seconds = row.seconds()
            if not is_shown and seconds > _UNNOTICED_SECONDS and _is_drawn():
                is_shown = True
                stack.enter_context(_drawn(row))
            if total and seconds > _PATIENCE_SECONDS and not is_shown and int(4 * row.done / total) > quarter:
                quarter = int(4 * row.done / total)
                if quarter < 4:
                    _note(f"{doing}, {25 * quarter} %")

        yield advance


@contextmanager
def imports_progress() -> Iterator[Callable[[str], None]]:
    """A function to call with each module whose imports are followed: a live line on a terminal, one line elsewhere."""
    if _is_drawn():
        with _drawn(_Row(_("following imports"), _("about ten seconds in total"))) as row:
            yield lambda module: setattr(row, "text", module)
        return
    _note(_("following imports"))
    yield lambda module: None


@contextmanager
def reading_progress() -> Iterator[Callable[[str], None]]:
    """A function to call with each module that is read: a live line on a terminal from the first call on."""
    with ExitStack() as stack:
        rows: list[_Row] = []

        def show(module: str) -> None:
            if not rows and _is_drawn():
                rows.append(stack.enter_context(_drawn(_Row(_("reading releases")))))
            for row in rows:
                row.text = module

        yield show


@contextmanager
def resolving_progress(seconds: float) -> Iterator[Callable[[], None]]:
    """A function to call whenever another set of versions is looked for, which ends after so many seconds."""
    count = 1
    if _is_drawn():
        limit = _("at most {seconds} s")
        with _drawn(_Row(_("resolving"), limit.format(seconds=f"{seconds:.0f}"), seconds)) as row:

            def show() -> None:
                nonlocal count
                count += 1
                row.done = row.seconds()
                left = f"{max(seconds - row.done, 0):.0f}"
                row.text = _("version set {count}, at most {seconds} s left").format(count=count, seconds=left)

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
        with _drawn(_Row(_("building"))) as row:
            sizes: dict[str, float] = {}

            def show(line: str) -> None:
                told = _DOWNLOADING.match(line)
                if told:
                    sizes[told[1]] = float(told[2]) * _UNITS[told[3]]
                    row.total = sum(sizes.values())
                elif line.startswith(" Downloaded "):
                    row.done += sizes.get(line.split()[1], 0.0)
                if not line.startswith(_WHERE):
                    row.text = line.strip()

            yield show
        return

    def note(line: str) -> None:
        if line.strip() and not line.startswith((" ", "+", "-", _WHERE)):
            _note(_("building: {line}").format(line=line.strip()))

    yield note
