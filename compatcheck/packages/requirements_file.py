"""Requirements files as pip splits them: logical lines with their comments, and the files that these name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from compatcheck.errors import InputError
from compatcheck.files import limits

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


def entered(path: str, including: tuple[str, ...]) -> tuple[str, ...]:
    """The files that are being read, with this one; raises `InputError` where it is among them or they are too many."""
    real = os.path.realpath(path)
    if len(including) >= limits.INCLUDES_DEPTH or real in including:
        seen = (
            "the includes form a cycle"
            if len(including) < limits.INCLUDES_DEPTH
            else "the includes are nested too deeply"
        )
        raise InputError("reading requirements from", path, seen, "remove the cycle of -r lines")
    return (*including, real)
