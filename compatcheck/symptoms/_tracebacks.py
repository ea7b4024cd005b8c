"""Python tracebacks anywhere in a log: of several ranks at once, behind any prefix, with or without their head."""

from __future__ import annotations

import re
from typing import NamedTuple

from compatcheck.files import limits

_HEAD = "Traceback (most recent call last)"
_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)(?:, in (.+))?')
_ENDING = re.compile(r"(?:[A-Za-z_][\w]*\.)*[A-Za-z_]\w*\s*(?::.*)?\Z")
_BARE = re.compile(r"\A(?:E\s+)?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|OutOfMemory))(?::\s(.*))?\Z")
_RANK = re.compile(r"\[(?:rank|default)(\d+)\]:|\brank[ =:]?(\d+)\b", re.IGNORECASE)
_PREFIX = re.compile(r"\A(?:\[(?:rank|default)\d+\]:\s?|\([^()]*pid=\d+[^()]*\)\s|\d+:\s)+")
_DIGITS = re.compile(r"\d")
_LONGEST = 400
_FRAMES_KEPT = 6


class Raised(NamedTuple):
    """The end of a traceback: the exception, its message, and the deepest frames, the last one the deepest."""

    name: str
    message: str
    line: int
    frames: tuple[str, ...]
    rank: str | None


class _Open:
    def __init__(self, prefix: str, line: int) -> None:
        self.prefix, self.shape, self.line = prefix, _DIGITS.sub("0", prefix), line
        self.frames: list[str] = []
        self.lines = 0


class Tracebacks:
    """Takes the lines that may belong to a traceback and gives the exceptions that end them."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self.inside = False
        """Whether the line that was fed last is a frame of a traceback, or the code of one."""

    def __bool__(self) -> bool:
        """Whether a traceback is open, so that every line may belong to it."""
        return bool(self._open)

    def feed(self, number: int, text: str) -> Raised | None:
        self.inside = False
        at = text.find(_HEAD)
        if at >= 0:
            self._open = [*self._open[-limits.OPEN_TRACEBACKS :], _Open(text[:at], number)]
            return None
        opened = self._opened_behind(text)
        return self._continue(opened, number, text[len(opened.prefix) :]) if opened else bare(number, text)

    def _opened_behind(self, text: str) -> _Open | None:
        """The traceback whose prefix the line has: the longest that is the same, else one alike but for digits."""
        same = iter(sorted((o for o in self._open if text.startswith(o.prefix)), key=lambda o: -len(o.prefix)))
        alike = (o for o in reversed(self._open) if _DIGITS.sub("0", text[: len(o.prefix)]) == o.shape)
        return next(same, None) or next(alike, None)

    def _continue(self, opened: _Open, number: int, rest: str) -> Raised | None:
        opened.lines += 1
        frame = _FRAME.match(rest)
        if frame:
            place = f"{frame[1]}:{frame[2]}" + (f" in {frame[3]}" if frame[3] else "")
            opened.frames = [*opened.frames[1 - _FRAMES_KEPT :], place[:_LONGEST]]
            self.inside = True
            return None
        if not rest.strip() or rest[:1].isspace() or rest.startswith("["):
            self.inside = rest.startswith(" ") and bool(opened.frames)
            if opened.lines > 2_000:
                self._open.remove(opened)
            return None
        self._open.remove(opened)
        if not _ENDING.match(rest.strip()):
            return None
        name, _, message = rest.strip().partition(":")
        return Raised(name.strip(), message.strip()[:_LONGEST], number, tuple(opened.frames), _rank(opened.prefix))


def bare(number: int, text: str) -> Raised | None:
    """An exception's last line as people paste it, without the traceback above it."""
    match = _BARE.match(without_prefix(text).strip())
    if match is None:
        return None
    return Raised(match[1], (match[2] or "").strip()[:_LONGEST], number, (), _rank(text))


def without_prefix(text: str) -> str:
    """The line without what launchers put before each line of a process."""
    return _PREFIX.sub("", text)


def _rank(text: str) -> str | None:
    match = _RANK.search(text)
    return (match[1] or match[2]) if match else None
