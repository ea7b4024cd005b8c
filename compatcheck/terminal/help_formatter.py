"""click's help, with text that is not ASCII folded by the cells that it takes."""

from __future__ import annotations

from collections.abc import Iterable

import click

from compatcheck.language import gettext as _
from compatcheck.terminal.cells import cells, fold, padded

_VERBATIM = "\b"
_LEAST = 10


class HelpFormatter(click.HelpFormatter):
    """click counts a Chinese letter as one column and breaks lines only at spaces."""

    def write_heading(self, heading: str) -> None:
        self.write(" " * self.current_indent + _("{heading}:").format(heading=heading) + "\n")

    def write_text(self, text: str) -> None:
        if text.isascii():
            super().write_text(text)
            return
        blocks = []
        for block in text.split("\n\n"):
            lines = block.strip("\n").split("\n")
            is_verbatim = lines[0].strip(" ") == _VERBATIM
            blocks.append(lines[1:] if is_verbatim else fold(block, self.width - self.current_indent))
        for number, rows in enumerate(blocks):
            self.write("\n" if number else "")
            for row in rows:
                self.write(f"{' ' * self.current_indent}{row}\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows = list(rows)
        if all(second.isascii() for _first, second in rows):
            super().write_dl(rows, col_max, col_spacing)
            return
        column = min(max(cells(first) for first, _second in rows), col_max) + col_spacing
        room = max(self.width - self.current_indent - column, _LEAST)
        for first, second in rows:
            lines = fold(second, room)
            if cells(first) > column - col_spacing:
                lines = ["", *lines]
            for number, line in enumerate(lines):
                start = padded("" if number else first, column)
                self.write(f"{' ' * self.current_indent}{start}{line}".rstrip(" ") + "\n")


class Context(click.Context):
    formatter_class = HelpFormatter
