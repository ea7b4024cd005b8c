"""Regular expressions for error lines: only such as cannot run away on a hostile line.

The standard library's engine, checked, serves better than google-re2: that has no wheel for glibc before 2.27 or for
musl, lacks lookahead, and took 13 times as long for a search from Python. What a comparison costs at most is
bounded, so a log costs time in proportion to its length: of 1,017 patterns none takes more than 10 ms on a line made
to harm it, and all together 54 ms.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from compatcheck.files import limits

if sys.version_info >= (3, 11):
    from re import _constants as constants  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_constants as constants
    import sre_parse

    parser: object = sre_parse

_WIDEST = 200
"""A repeat up to so many is bounded; one beyond is open."""


_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT)
_ONE_CHARACTER = (constants.LITERAL, constants.NOT_LITERAL, constants.IN, constants.ANY)

_MOST_ALTERNATIVES = 32
"""Texts of which one stands in every match, at most; more are cut at the alternative."""

_NAME = re.compile(r"(?:[A-Za-z_]\w{0,60}\\?\.)*[A-Za-z]\w{0,60}(?:Error|Exception|Warning): ")
_FEWEST_WORDS = 3
_LETTERS = re.compile(r"[A-Za-z]{2}")


def check_regex(text: str) -> str:
    """The expression itself. Raises ValueError where it is none, or may take more than a bounded line is worth.

    What is repeated is a single character or class: an alternative, or an optional or repeated part within a repeat,
    can be matched in exponentially many ways.
    """
    try:
        re.compile(text)
        parsed = parser.parse(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    ways = 1
    for least, most, repeated in _repeats(parsed):
        if len(repeated) != 1 or repeated[0][0] not in _ONE_CHARACTER:
            raise ValueError(f"{text!r}: a repeat may contain only one character or class; write the rest out")
        ways *= min(most, limits.MATCHED_CHARACTERS) - least + 1
    if ways > limits.PATTERN_WAYS:
        raise ValueError(f"{text!r}: its repeats match too much; limit them, as in {{0,80}}")
    if any(operation in _REPEATS and argument[1] > _WIDEST for operation, argument in list(parsed)[:1]):
        raise ValueError(f"{text!r}: it starts with an unbounded repeat; remove the repeat")
    return text


def literals(text: str) -> tuple[str, ...]:
    """The longest plain texts of which one stands in every match, in lower case; none where a match needs no text.

    A line that holds none of them need not be searched.
    """
    return tuple(dict.fromkeys(each.lower() for each in _best_texts(parser.parse(text))))


def _best_texts(parsed: Iterable[Any]) -> tuple[str, ...]:
    best: tuple[str, ...] = ()
    for run in _runs(parsed):
        best = max(best, run, key=_shortest)
    return best


def _shortest(texts: tuple[str, ...]) -> int:
    return min(map(len, texts), default=0)


def _runs(parsed: Iterable[Any]) -> Iterator[tuple[str, ...]]:
    """Each stretch of the expression that is plain text or a choice between few plain texts, spelt out."""
    run: tuple[str, ...] = ("",)
    for operation, argument in _flat(parsed):
        choices = _choices(operation, argument)
        if choices and len(run) * len(choices) <= _MOST_ALTERNATIVES:
            run = tuple(map("".join, product(run, choices)))
            continue
        yield run
        run = choices or ("",)
        if operation is constants.BRANCH and not choices:
            best = [_best_texts(branch) for branch in argument[1]]
            if all(best):
                yield tuple(each for texts in best for each in texts)
    yield run


def _flat(parsed: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for operation, argument in parsed:
        if operation is constants.SUBPATTERN:
            yield from _flat(argument[-1])
        else:
            yield operation, argument


def _choices(operation: Any, argument: Any) -> tuple[str, ...]:
    """The plain texts that a part may stand for; none where it is no choice between few."""
    if operation in (constants.AT, constants.ASSERT, constants.ASSERT_NOT):
        return ("",)
    if operation is constants.LITERAL:
        return (chr(argument),)
    if operation is constants.IN and all(kind is constants.LITERAL for kind, _ in argument):
        return tuple(chr(code) for _, code in argument)
    if operation in _REPEATS and argument[:2] == (0, 1):
        runs = list(_runs(argument[2]))
        return ("", *runs[0]) if len(runs) == 1 else ()
    if operation is constants.BRANCH:
        spelt = [list(_runs(branch)) for branch in argument[1]]
        if all(len(runs) == 1 for runs in spelt):
            return tuple(each for (run,) in spelt for each in run)
    return ()


def without_name(text: str, not_examples: Iterable[str] = ()) -> str:
    """The expression without the name of the exception that it begins with, where the message alone tells enough.

    It does where it is a phrase, and not the mere value that some exceptions give; people quote a message without its
    name. What stands before the message may then not run on into it. The lines that must not match decide as well.
    """
    name = _NAME.match(text)
    if name is None or _is_choice(text):
        return text
    message = text[name.end() :]
    phrase = "".join(min(run, key=len) for run in _runs(parser.parse(message)))
    words = [word for word in phrase.split() if _LETTERS.search(word)]
    if len(words) < _FEWEST_WORDS or _NAME.match(message) or message.startswith("."):
        return text
    bare = rf"(?<![\w.]){message}" if re.match(r"\w", message) else rf"(?<!\w){message}"
    return text if any(re.search(bare, line) for line in not_examples) else bare


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
            raise ValueError(f"an error pattern cannot contain {str(operation).lower()}")


def _is_choice(text: str) -> bool:
    """Whether the expression is a choice between several on its outermost level."""
    inside = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]", "", text)
    depth = 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and not depth:
            return True
    return False
