"""Error patterns: what they match, and what they miss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from compatcheck.files import limits
from compatcheck.matrix._quoted_messages import quoted_messages
from compatcheck.matrix._regex import without_name
from compatcheck.matrix.entry import Entry
from compatcheck.results.logs import ERROR_MARKS

_EXCEPTION = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*[A-Za-z]\w*(?:Error|Exception|Warning): ")


_WORDS = re.compile(r"\S*[A-Za-z]{2}\S*")


_FEWEST_WORDS = 3


def false_patterns(entry: Entry) -> Iterator[str]:
    """A pattern must match its own example, a line as a log shows it, and none of the lines it is told not to.

    A log is read line by line: those with a mark of an error, and all of a traceback, whose frames are set in.
    """
    for number, pattern in enumerate(entry.error_patterns, 1):
        regex = re.compile(pattern.regex)
        if len(pattern.example) > limits.MATCHED_CHARACTERS or not regex.search(pattern.example):
            yield f"error pattern {number} does not match its example"
        if "\n" in pattern.example:
            yield f"error pattern {number}: the example has several lines, but a log is read line by line"
        if not pattern.example.startswith("  ") and not any(mark in pattern.example for mark in ERROR_MARKS):
            yield (
                f"error pattern {number}: the example contains no error mark, so the pattern is never compared with it"
            )
        for line in pattern.not_examples:
            if regex.search(line):
                yield f"error pattern {number} matches {line!r}, which it must not match"


def patterns_by_name(entry: Entry) -> Iterator[str]:
    """A message is quoted without the exception's name: a phrase must match alone, or stand in a line not to match."""
    for number, pattern in enumerate(entry.error_patterns, 1):
        name = _EXCEPTION.match(pattern.example)
        message = pattern.example[name.end() :] if name else ""
        if len(_WORDS.findall(message)) < _FEWEST_WORDS or any(message in line for line in pattern.not_examples):
            continue
        if not re.search(without_name(pattern.regex, pattern.not_examples), message, re.IGNORECASE | re.ASCII):
            yield f"error pattern {number} needs the exception's name: match {message!r} or name it in not_examples"


def patterns(entries: Iterable[Entry]) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (entry.id, re.compile(without_name(pattern.regex, pattern.not_examples), re.IGNORECASE | re.ASCII))
        for entry in entries
        for pattern in entry.error_patterns
    ]


def messages_of_others(entry: Entry, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> Iterator[str]:
    """A message that the entry quotes must not lead to others alone, unless it says that it means another line."""
    lines = [line for pattern in entry.error_patterns for line in (pattern.example, *pattern.not_examples)]
    for message in quoted_messages(entry):
        owners = sorted({name for name, regex in patterns if regex.search(message)})
        parts = [part.strip().lower() for part in message.split("...")]
        shown = any(all(part in line.lower() for part in parts) for line in lines)
        if owners and entry.id not in owners and not shown:
            yield f"the entry quotes {message!r}, which only the pattern of {owners[0]} matches"
