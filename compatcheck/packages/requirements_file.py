"""Requirements files as pip splits them: logical lines with their comments, and the files that these name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import OversizeError

_DOING = "reading requirements from"
_INCLUDE = re.compile(r"(-r|--requirement|-c|--constraint)(?:\s+|=)?(.+)\Z")
_OPTIONS_BEHIND = re.compile(r"\s--[a-z][a-z-]*[=\s].*\Z")
_COMMENT = re.compile(r"(?:^|\s)\s*#.*\Z")


class LogicalLine(NamedTuple):
    """Continuations joined; ``number`` is that of the first, from 1. ``comment`` keeps its indentation if it is alone.

    Of an empty line both are empty.
    """

    number: int
    text: str
    comment: str


class Include(NamedTuple):
    """A file that a line names; ``constraint`` where it only limits what others ask for."""

    path: str
    constraint: bool


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """Every line of a file, the empty ones too."""
    parts: list[str] = []
    comments: list[str] = []
    start = 0
    lines = text.splitlines()
    for number, raw in enumerate(lines, 1):
        start = start or number
        found = _COMMENT.search(raw)
        line = raw[: found.start()] if found else raw
        comments += [found[0].rstrip()] if found else []
        continued = line.endswith("\\")
        parts.append(line.removesuffix("\\"))
        if continued and number < len(lines):
            continue
        whole = " ".join(filter(None, map(str.strip, parts)))
        yield LogicalLine(start, whole, "  ".join(map(str.strip, comments)) if whole else "".join(comments))
        parts, comments, start = [], [], 0


def without_options(text: str) -> str:
    """A requirement without the options behind it, as hashes."""
    return _OPTIONS_BEHIND.sub("", text)


def included(text: str) -> Include | None:
    """The file that a line includes or limits by; None where it names none, or a URL."""
    found = _INCLUDE.match(text)
    if found is None or "://" in found[2]:
        return None
    return Include(found[2].strip().strip("'\""), found[1] in ("-c", "--constraint"))


class Walk:
    """One reading of a file and of those it includes: which are open, and how much they have held so far."""

    def __init__(self) -> None:
        self.including: list[str] = []
        self._files = self._lines = 0

    def lines(self, path: str, text: str) -> Iterator[LogicalLine]:
        """The lines of one file, which is open while they are taken.

        Raises `InputError` where it is open already, or is too deep, or where the files or their lines are too many.
        """
        real = os.path.realpath(path)
        if real in self.including:
            raise InputError(_DOING, path, "the includes form a cycle", "remove the cycle of -r lines")
        self._files += 1
        if len(self.including) >= limits.INCLUDES_DEPTH:
            raise OversizeError(_DOING, path, "the includes are nested too deeply", "remove some of the -r lines")
        if self._files > limits.INCLUDED_FILES:
            seen = f"the includes read more than {limits.INCLUDED_FILES} files"
            raise OversizeError(_DOING, path, seen, "remove some of the -r lines")
        self.including.append(real)
        for line in logical_lines(text):
            self._lines += bool(line.text)
            if self._lines > limits.REQUIREMENT_LINES:
                seen = f"more than {limits.REQUIREMENT_LINES:,} requirements"
                raise OversizeError(_DOING, path, seen, "pass the requirements of one project")
            if len(line.text) > limits.REQUIREMENT_CHARACTERS < len(without_options(line.text)):
                seen = f"line {line.number} has more than {limits.REQUIREMENT_CHARACTERS:,} characters"
                raise OversizeError(_DOING, path, seen, "shorten it")
            yield line
        self.including.pop()
