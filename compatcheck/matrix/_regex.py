"""Regular expressions for error lines: only such as cannot run away on a hostile line.

The standard library's engine, checked, serves better than google-re2: that has no wheel for glibc before 2.27 or for
musl, lacks lookahead, and took 13 times as long for a search from Python. No pattern takes a millisecond on a line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from compatcheck.results.logs import LONGEST_MATCHED

if sys.version_info >= (3, 11):
    from re import _constants as constants  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_constants as constants
    import sre_parse

    parser: object = sre_parse

_WIDEST = 200
"""A repeat up to so many is bounded; one beyond is open."""

_MOST_WAYS = 20_000
"""In how many ways the repeats of an expression may share out a line, an open one counted as a whole line."""

_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT)
_ONE_CHARACTER = (constants.LITERAL, constants.NOT_LITERAL, constants.IN, constants.ANY)


def check_regex(text: str) -> str:
    """The expression itself. Raises ValueError where it is none, or may take more than a bounded line is worth.

    What is repeated is a single character or class: an alternative, or an optional or repeated part within a repeat,
    can be matched in exponentially many ways.
    """
    try:
        re.compile(text)
        parsed = parser.parse(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    ways = 1
    for least, most, repeated in _repeats(parsed):
        if len(repeated) != 1 or repeated[0][0] not in _ONE_CHARACTER:
            raise ValueError(f"{text!r}: a repeat may hold one character or class only; spell the rest out")
        ways *= min(most, LONGEST_MATCHED) - least + 1
    if ways > _MOST_WAYS:
        raise ValueError(f"{text!r}: its repeats are too wide together; bound them, as in {{0,80}}")
    if any(operation in _REPEATS and argument[1] > _WIDEST for operation, argument in list(parsed)[:1]):
        raise ValueError(f"{text!r}: it begins with a repeat that has no bound; leave that out")
    return text


def longest_literal(text: str) -> str:
    """The longest run of plain characters that stands in every match; empty where there is none.

    A line without it need not be searched.
    """
    best = run = ""
    for operation, argument in parser.parse(text):
        run = run + chr(argument) if operation is constants.LITERAL else ""
        best = max(best, run, key=len)
    return best


def _repeats(parsed: Iterable[Any]) -> Iterator[tuple[int, int, Any]]:
    """The least and most times, and the repeated part, of each repeat of more than one; raises ValueError else."""
    for operation, argument in parsed:
        if operation in _REPEATS:
            least, most, inner = argument
            if most > 1:
                yield least, most, inner
            yield from _repeats(inner)
        elif operation is constants.BRANCH:
            for branch in argument[1]:
                yield from _repeats(branch)
        elif operation is constants.SUBPATTERN:
            yield from _repeats(argument[-1])
        elif operation in (constants.ASSERT, constants.ASSERT_NOT):
            yield from _repeats(argument[1])
        elif operation not in (*_ONE_CHARACTER, constants.AT):
            raise ValueError(f"an error pattern has no use for {str(operation).lower()}")
