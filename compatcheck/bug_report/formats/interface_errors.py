"""Errors that say which name, parameter or attribute the release that ran does not have, and the code that asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.packages.interface_errors import MARKS, missing_name, read_interface_error
from compatcheck.packages.interface_failures import Failure, add_failure, read_failure, to_fact
from compatcheck.packages.traceback_frames import MOST_LINES

TITLE = "errors of names, parameters and attributes"
WITHIN_PROSE = True

_LONGEST = 4_000


def recognises(block: Block) -> tuple[Line, ...]:
    """All lines of a block with such an error: those above it are its traceback."""
    return block.lines if any(map(_is_error, block.lines)) else ()


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    """Every failure once, with the line that says so first."""
    found: list[Failure] = []
    places: list[int] = []
    for at, line in enumerate(lines):
        failure = (
            read_failure([each.text for each in lines[max(0, at - MOST_LINES) : at + 1]]) if _is_error(line) else None
        )
        if failure:
            found = add_failure(found, failure)
            places = [*places, line.number][: len(found)]
    for failure, place in zip(found, places):
        yield Claim("interface_errors", [to_fact(failure)], place)
        if missing := missing_name(failure.error):
            yield Claim("missing_names", [missing], place)


def _is_error(line: Line) -> bool:
    is_short = len(line.text) <= _LONGEST
    return is_short and any(mark in line.text for mark in MARKS) and read_interface_error(line.text) is not None
