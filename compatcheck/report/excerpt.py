"""The line of the user's file that a finding is about, with what is at fault underlined."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compatcheck.environment import Location, RecordedLocation
from compatcheck.files.reading import start_of
from compatcheck.files.secrets import masked
from compatcheck.results.findings import Finding
from compatcheck.terminal.cells import cells, visible

_MARGIN = 10
_LARGEST = 1 << 20
_VALUE = r"[\"']?\s*(?:=|:|==|[<>~]=?|\s)\s*(?:\"[^\"]*\"|'[^']*'|[^\s,;)\]}\\]+)"


def rows(finding: Finding, width: int) -> Iterator[str]:
    """The line behind its number, and a row of carets; nothing where the file does not hold the line.

    Nothing for a place that a snapshot names: it could show any file of this machine.
    """
    at = finding.location
    is_own = at is not None and at.line is not None and not isinstance(at, RecordedLocation)
    line = _line(at) if at is not None and is_own else None
    if at is None or line is None or not line.strip():
        return
    number = f"{'':{_MARGIN}}{at.line} | "
    start, end = _fault(line, finding, at)
    shown, start, end = _cut(line, start, end, width - len(number))
    yield number + shown
    yield f"{'':{len(number) - 2}}| {'':{cells(shown[:start])}}{'^' * max(1, cells(shown[start:end]))}"


def _line(at: Location) -> str | None:
    """The line as it may be shown: without credentials and control characters."""
    if at.file.endswith(".ipynb"):
        return None
    text = start_of(at.file, _LARGEST)
    lines = text.split("\n") if text is not None and at.line else []
    return visible(masked(lines[at.line - 1].expandtabs(4).rstrip())) if at.line and at.line <= len(lines) else None


def _fault(line: str, finding: Finding, at: Location) -> tuple[int, int]:
    """Where the setting or requirement of the finding stands in the line; all of its text where that is not seen."""
    for held in finding.because:
        if held.location == at:
            name = re.escape(held.fact.rpartition(".")[2]).replace(r"\-", "[-_.]")
            found = re.search(rf"(?:--|[\"'])?\b{name}{_VALUE}", line)
            if found:
                return found.span()
    return len(line) - len(line.lstrip()), len(line.rstrip(" \\"))


def _cut(line: str, start: int, end: int, room: int) -> tuple[str, int, int]:
    """The part of a long line that holds the fault."""
    room = max(room, 20)
    if len(line) <= room:
        return line, start, end
    first = max(0, min(start - 4, len(line) - room))
    shown = line[first : first + room]
    if first:
        shown = "…" + shown[1:]
    if first + room < len(line):
        shown = shown[:-1] + "…"
    return shown, max(start - first, 0), min(end - first, room)
