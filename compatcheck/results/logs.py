"""Frozen values for what was seen in a log and what explains it; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from compatcheck.environment import Environment, Location

ERROR_MARKS = (
    "rror",
    "xception",
    "arning",
    "WARN",
    "ailed",
    "not ",
    "no attr",
    "can't",
    "undefined",
    "SIGKILL",
    "exitcode",
    "Killed",
    "imeout",
    "imed out",
    "mismatch",
    "(s) in state_dict",
    "ncompatible",
    "already at",
    "inimum loss",
    "no kernel",
    "out of memory",
    "OutOfMemory",
    "NCCL",
    "LLVM ERROR",
)
"""A line that holds none of these is no error line; so that most lines of a log cost nothing."""

Fit = Literal["affected", "possible", "open"]
"""How an entry stands to the known facts: it applies, it may for want of some, or nothing decides about it."""


class Pattern(NamedTuple):
    """A regular expression for the error lines that an entry explains, in any letter case.

    Each of those lines holds one of ``literals`` in lower case, where there are any; ``keys`` has a whole word of each
    literal. A pattern of a ``frame`` is for the frames of a traceback, and matches the code that they show.
    """

    entry: str
    regex: str
    literals: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    frame: bool = False


class Hit(NamedTuple):
    """A line of a log that an entry's pattern matches.

    ``others`` is how many other entries know the line. ``whole`` tells that a program printed the line, rather than
    that somebody quotes the error within a sentence.
    """

    entry: str
    text: str
    location: Location
    others: int = 0
    whole: bool = True


class Moment(NamedTuple):
    """One reading of a log as people are told of it; ``about`` marks a step taken from a progress bar."""

    location: Location
    step: float | None = None
    epoch: float | None = None
    values: Mapping[str, float] = {}
    about: bool = False


class Signature(NamedTuple):
    """What a log shows, by a name that does not change, and in words.

    ``symptoms`` are the words that entries of the matrix use. A ``benign`` signature is no fault, which makes a run
    healthy only where it was ``judged``: there were steps enough.
    """

    name: str
    words: str
    symptoms: frozenset[str] = frozenset()
    benign: bool = False
    details: tuple[str, ...] = ()

    @property
    def judged(self) -> bool:
        return self.name not in ("no-readings", "too-few-readings")


class Crash(NamedTuple):
    """An exception or a failure message, and the deepest frames of its traceback."""

    kind: str
    text: str
    location: Location
    frames: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()


class Curve(NamedTuple):
    """Values over steps, thinned; a value that is not finite stands for readings that were not.

    ``axis`` says what its points are counted in, ``step`` or ``reading``; ``onset`` is where the symptom began on it.
    ``beside`` is a second curve of the same kind to be drawn with it, and ``bounds`` the values between which both are.
    """

    name: str
    unit: str
    points: tuple[tuple[float, float], ...]
    onset: float | None = None
    axis: str = "step"
    beside: Curve | None = None
    bounds: tuple[float, float] | None = None


class Run(NamedTuple):
    """One training run in a log."""

    signature: Signature
    first_line: int
    last_line: int
    readings: int
    onset: Moment | None = None
    healthy: Moment | None = None
    last: Moment | None = None
    notes: tuple[Signature, ...] = ()
    curves: tuple[Curve, ...] = ()
    crash: Crash | None = None


class Log(NamedTuple):
    """What one log shows: its runs in order, exceptions, lines that entries know, and the facts it states."""

    path: str
    runs: tuple[Run, ...]
    crashes: tuple[Crash, ...]
    hits: tuple[Hit, ...]
    facts: Environment
    notes: tuple[str, ...] = ()

    @property
    def last(self) -> Run | None:
        return self.runs[-1] if self.runs else None
