"""What a ranking reads of every entry: a light row each, so that an entry is read whole only where it is shown.

The words of all entries are one inverted index: for each word the rows that hold it, and how often each does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from compatcheck.matrix.entry import Entry

_WORD = re.compile(r"[a-z_][a-z0-9_]{2,}|\d+\.\d+(?:\.\d+)*")
_CHINESE = re.compile(r"[\u4e00-\u9fff]{2,}")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        about after again all also and any are because been before being both but can cannot could did does down
        each for from had has have here how into its just like may more most must not now off once one only
        other out over per same see should since some such than that the their them then there these they this
        those too two under until use used uses using very was way were what when where which while who why will
        with without would you your""",
    )
)
_ENDINGS = ("ing", "ies", "ied", "ed", "es", "s")
_SHORTEST_STEMMED = 6
_TITLE = 3
_MOST_COMMON = 0.4
"""Share of all entries beyond which a word tells nothing."""


class Row(NamedTuple):
    """One entry in force. ``published`` is a day in ISO form, ``words`` the number of words of its texts.

    ``sources`` is the number of pages that its evidence names. ``affected`` holds its tables of conditions, and ``at``
    the place from which `Matrix.read` reads it whole.
    """

    id: str
    symptoms: tuple[str, ...]
    packages: tuple[str, ...]
    published: str
    confidence: str
    impact: str
    sources: int
    words: int
    affected: tuple[Mapping[str, Any], ...]
    at: tuple[int, int]


Postings = Mapping[str, str]
"""For each word the rows that hold it: the step from one row's number to the next, with ``x3`` if it holds it thrice.

A text for each word, as a case looks up a few hundred of many thousands.
"""


def split_words(text: str) -> Iterator[str]:
    """The words, identifiers and versions of a text in lower case, and each two Chinese characters in a row.

    Stop words and the endings of words are left out, and a name with dots gives its parts.
    """
    lower = text.lower()
    yield from (_stem(word) for word in _WORD.findall(lower) if word not in _STOP_WORDS)
    for run in _CHINESE.findall(lower):
        yield from map("".join, zip(run, run[1:]))


@cache
def _stem(word: str) -> str:
    """The word without the ending of a plural, a participle or a gerund; identifiers and short words as they are."""
    if len(word) >= _SHORTEST_STEMMED and word.isalpha() and not word.endswith("ss"):
        for ending in _ENDINGS:
            if word.endswith(ending):
                return word[: -len(ending)]
    return word


def compile_rows(
    entries: Sequence[Entry], texts: Mapping[str, Mapping[str, str]]
) -> tuple[list[list[object]], dict[str, str]]:
    """A row of plain JSON for each entry, and the postings of their words.

    ``texts`` holds by language what the entries say there.
    """
    rows: list[list[object]] = []
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, entry in enumerate(entries):
        held = Counter(word for text in _prose(entry, texts) for word in split_words(text))
        for word, count in held.items():
            postings.setdefault(word, []).append((number, count))
        rows.append(
            [
                entry.id,
                entry.symptoms,
                entry.distributions,
                entry.published.isoformat(),
                entry.confidence,
                entry.impact,
                len({str(evidence.url) for evidence in entry.evidence}),
                held.total(),
            ]
        )
    most = len(rows) * _MOST_COMMON
    return rows, {word: _posting(found) for word, found in sorted(postings.items()) if len(found) <= most}


def _posting(rows: Sequence[tuple[int, int]]) -> str:
    before = [0, *(number for number, _ in rows)]
    steps = ((number - last, count) for (number, count), last in zip(rows, before))
    return " ".join(f"{step}x{count}" if count > 1 else str(step) for step, count in steps)


def parse_posting(text: str) -> list[tuple[int, int]]:
    """The rows that hold a word, each with how often it does."""
    number, found = 0, []
    for token in text.split():
        step, _, count = token.partition("x")
        number += int(step)
        found.append((number, int(count or 1)))
    return found


def _prose(entry: Entry, texts: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """What an entry says, in English and in each language it is translated to; its title counts three times."""
    said = [*[entry.title] * _TITLE, entry.summary, entry.mechanism, *entry.misleading]
    said += [text for remedy in entry.remedies for text in (remedy.why, remedy.action) if text]
    yield from said
    for language in texts.values():
        yield from (language.get(text, "") for text in said)
    yield from (pattern.example for pattern in entry.error_patterns)


def parse_rows(rows: Iterable[Any], conditions: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    """The compiled rows joined with the conditions, which are in the same order."""
    return tuple(
        Row(
            name,
            tuple(symptoms),
            tuple(packages),
            published,
            confidence,
            impact,
            sources,
            words,
            tuple(judged["affected"]),
            (judged["at"][0], judged["at"][1]),
        )
        for (name, symptoms, packages, published, confidence, impact, sources, words), judged in zip(rows, conditions)
    )
