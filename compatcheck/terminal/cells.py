"""Text by the cells that it takes on a terminal: a Chinese letter takes two, a combining mark none."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NOT_FIRST = frozenset("，。、；：？！）】》」』〉〕’”…—·～％℃ー々,.;:?!)]}%")
_ENDS_WITH_ROOM = tuple("。；！？，、：")
"""These hold the space that Latin punctuation has behind it."""
_NOT_LAST = frozenset("（【《「『〈〔‘“([{")
_UNSEEN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"  # compiled where there are some


def cells(text: str) -> int:
    """The cells that the text takes, in which a letter of ambiguous width counts one."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def padded(text: str, width: int) -> str:
    """The text followed by spaces up to ``width`` cells."""
    return text + " " * (width - cells(text))


def fold(text: str, width: int, first: int | None = None) -> list[str]:
    """The text in rows of at most ``width`` cells, the first of at most ``first``; there is at least one row.

    Rows end at spaces and between Chinese letters, where their punctuation allows it. What has no such place is not
    broken, so that a command or an address can be copied. Control characters are spelled out: a log or a file name
    does not get to steer the terminal.
    """
    rows: list[str] = []
    row, taken, room = "", 0, width if first is None else first
    for gap, piece in _pieces(visible(text)):
        gap = "" if row.endswith(_ENDS_WITH_ROOM) else gap
        size = cells(piece)
        needed = taken + (len(gap) if row else 0) + size
        if needed > room and (row or room < width):
            rows.append(row)
            row, taken, room = piece, size, width
        else:
            row, taken = f"{row}{gap if row else ''}{piece}", needed
    return [*rows, row]


def clipped(text: str, width: int) -> str:
    """As much of the start of the text as fits in ``width`` cells."""
    while cells(text) > width:
        text = text[: width - cells(text)]
    return text


def visible(text: str) -> str:
    """The text with white space as single spaces, and spelled out what would steer a terminal."""
    return spelled_out(" ".join(text.split()))


def spelled_out(text: str) -> str:
    """The text with its white space, and spelled out what would steer a terminal."""
    return text if text.isprintable() else re.sub(_UNSEEN, lambda found: repr(found[0])[1:-1], text)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """What may not be broken, each with what stands before it in the same row: a space or nothing."""
    for word in text.split(" "):
        if word.isascii():
            yield " ", word
            continue
        start = 0
        for at in range(1, len(word)):
            if _may_part(word[at - 1], word[at]):
                yield "" if start else " ", word[start:at]
                start = at
        yield "" if start else " ", word[start:]


def _may_part(left: str, right: str) -> bool:
    wide = _cells(left) == 2 or _cells(right) == 2
    return wide and right not in _NOT_FIRST and left not in _NOT_LAST and _cells(right) > 0


def _cells(letter: str) -> int:
    if letter.isascii():
        return 1
    from unicodedata import category, east_asian_width

    if category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1
