"""What the messages of exceptions, launchers, drivers and kernels mean: the rows of the table of failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.packages.shipped_tables import shipped_table


class Failure(NamedTuple):
    """One kind of message. ``fatal`` ones end a run by themselves, without a traceback."""

    kind: str
    words: str
    regex: str = ""
    marks: tuple[str, ...] = ()
    symptoms: frozenset[str] = frozenset()
    fatal: bool = False

    def matches(self, text: str) -> bool:
        return any(mark in text for mark in self.marks) and re.search(self.regex, text) is not None


@cache
def failures() -> tuple[Failure, ...]:
    """Every kind that is known, the more telling first."""
    rows = shipped_table("failures")["failures"]
    return tuple(
        Failure(
            row["kind"],
            row["title"],
            row["regex"],
            tuple(row["marks"]),
            frozenset(row["symptoms"]),
            row.get("fatal", False),
        )
        for row in rows
    )


def line_marks() -> tuple[str, ...]:
    """A line of a long log that holds one of these may be of some kind, beside those that hold a mark of any error."""
    return tuple(shipped_table("failures")["line_marks"])


@cache
def fatal_marks() -> tuple[str, ...]:
    """One of these stands in every message that is fatal by itself."""
    return tuple(dict.fromkeys(mark for failure in failures() if failure.fatal for mark in failure.marks))


UNKNOWN = Failure("error", "the run ended with an exception")
_MEMORY = re.compile(r"Tried to allocate ([\d.]+ [KMGT]iB)")
_CAPACITY = re.compile(r"total capacity of ([\d.]+ [KMGT]iB)|([\d.]+ [KMGT]iB) total capacity")
_FREE = re.compile(r"of which ([\d.]+ [KMGT]iB) is free|([\d.]+ [KMGT]iB) free")
_RESERVED = re.compile(r"([\d.]+ [KMGT]iB) is reserved by PyTorch but unallocated")


def kind_of(text: str) -> Failure:
    """The kind of failure that an exception's line tells of."""
    return next((failure for failure in failures() if failure.matches(text)), UNKNOWN)


def of_kind(kind: str) -> Failure:
    return next((failure for failure in failures() if failure.kind == kind), UNKNOWN)


def fatal_line(text: str) -> Failure | None:
    """The failure that a line tells of by itself, with no traceback above it."""
    return next((failure for failure in failures() if failure.fatal and failure.matches(text)), None)


def memory_details(text: str) -> Iterator[str]:
    """The numbers in a message that a device ran out of memory."""
    for label, regex in (
        (marked("asked for"), _MEMORY),
        (marked("the device has"), _CAPACITY),
        (marked("free"), _FREE),
        (marked("reserved but unused"), _RESERVED),
    ):
        match = regex.search(text)
        if match:
            yield f"{_(label)} {next(filter(None, match.groups()))}"
