"""Lines of a report, and how they are drawn on what shows them.

Written by hand, since every verb pays for it at its start: an interpreter that imports this module takes 27 ms of CPU,
one that imports rich.console 55 ms, one that imports nothing 12 ms.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from compatcheck.terminal.cells import cells, fold, padded
from compatcheck.terminal.screen import Screen

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_ADDRESS = re.compile(r"https?://[^\s<>\"']*[^\s<>\"'.,;:)\]]")
_LEAST_ROOM = 32


class Line(NamedTuple):
    """A text that may be folded, behind a head that stands in the margin of its first line.

    ``indent`` is in cells. ``links`` holds words of the text or the head with the address or the file they lead to.
    ``plain`` is the row that scripts read instead of it, where there is no terminal.
    """

    text: str = ""
    style: str = ""
    head: str = ""
    head_style: str = ""
    indent: int = 0
    links: tuple[tuple[str, str], ...] = ()
    plain: str = ""


def written(lines: Iterable[Line], screen: Screen) -> str:
    """The lines as text, each row ending in a newline."""
    drawn = []
    for line in lines:
        if line.plain and not screen.is_terminal:
            drawn.append(line.plain + "\n")
            continue
        for head, rest in _folded(line, screen):
            if screen.colour or screen.links:
                links = line.links if screen.links else ()
                row = _drawn(head, line.head_style, links, screen) + _drawn(rest.rstrip(), line.style, links, screen)
            else:
                row = f"{head}{rest}"
            drawn.append(row.rstrip() + "\n")
    return "".join(drawn)


def _folded(line: Line, screen: Screen) -> list[tuple[str, str]]:
    """The line's rows: what stands in the margin, and the text beside it."""
    room = screen.width - line.indent
    if room < _LEAST_ROOM and line.indent and line.text:
        return _folded_narrowly(line, screen.width)
    rows = fold(line.text, room)
    return [(padded(line.head, line.indent), rows[0]), *((" " * line.indent, row) for row in rows[1:])]


def _folded_narrowly(line: Line, width: int) -> list[tuple[str, str]]:
    """The rows where the margin would leave too little beside it: it shrinks, and text begins right behind its head."""
    indent = min(line.indent // 4, 4)
    head = line.head.strip() and " " * ((len(line.head) - len(line.head.lstrip())) // 4) + line.head.strip() + "  "
    rows = fold(line.text, width - indent, width - (cells(head) or indent))
    return [(head or " " * indent, rows[0]), *((" " * indent, row) for row in rows[1:])]


def _drawn(text: str, style: str, links: Iterable[tuple[str, str]], screen: Screen) -> str:
    if screen.links:
        text = _ADDRESS.sub(lambda found: _linked(found[0], found[0]), text)
    for word, target in links:
        before, found, after = text.rpartition(word)
        text = before + _linked(found, target) + after if found else text
    codes = ";".join(_CODES[each] for each in style.split()) if screen.colour else ""
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text.strip() else text


def _linked(text: str, target: str) -> str:
    """The text as a hyperlink to an address, or to a file of this machine by its path."""
    address = target if target.startswith("http") else _file_address(target)
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def _file_address(path: str) -> str:
    """The address of a file; with the machine's name, so that a terminal elsewhere does not look for it there."""
    import platform
    from pathlib import Path

    address = Path(path).absolute().as_uri()
    return address if os.name == "nt" else address.replace("file://", f"file://{platform.node()}", 1)
