"""What a ranking reads of every entry: a light row each, so that an entry is read whole only where it is shown.

The words of an entry are kept as numbers into one vocabulary, which holds in how many entries each word stands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
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


class Row(NamedTuple):
    """One entry in force. ``published`` is a day in ISO form, ``terms`` are numbers of the vocabulary, ascending.

    ``sources`` is the number of pages that its evidence names.
    ``affected`` holds its tables of conditions, and ``at`` the place from which `Matrix.read` reads it whole.
    """

    id: str
    symptoms: tuple[str, ...]
    packages: tuple[str, ...]
    published: str
    confidence: str
    impact: str
    sources: int
    terms: tuple[int, ...]
    affected: tuple[Mapping[str, Any], ...]
    at: tuple[int, int]


class Term(NamedTuple):
    """A word's number, and in how many entries it stands."""

    number: int
    entries: int


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
) -> tuple[list[list[object]], dict[str, int]]:
    """A row of plain JSON for each entry, and the vocabulary: in how many entries each word stands, in its order.

    ``texts`` holds by language what the entries say there. Words are numbered by how often they stand, those of one
    entry in a row, and each row holds the steps from one number to the next: so both compress to half.
    """
    held = [sorted(set(split_words(" ".join(_prose(entry, texts))))) for entry in entries]
    found = Counter(word for each in held for word in each)
    vocabulary = dict(sorted(found.items(), key=lambda item: -item[1]))
    numbers = {word: number for number, word in enumerate(vocabulary)}
    rows: list[list[object]] = [
        [
            entry.id,
            entry.symptoms,
            entry.distributions,
            entry.published.isoformat(),
            entry.confidence,
            entry.impact,
            len({str(evidence.url) for evidence in entry.evidence}),
            _steps(sorted(numbers[word] for word in each)),
        ]
        for entry, each in zip(entries, held)
    ]
    return rows, vocabulary


def _steps(numbers: Sequence[int]) -> list[int]:
    return [number - before for before, number in zip([0, *numbers], numbers)]


def _prose(entry: Entry, texts: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield from (entry.title, entry.summary)
    yield from (pattern.example for pattern in entry.error_patterns)
    for language in texts.values():
        yield from (language.get(entry.title, ""), language.get(entry.summary, ""))


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
            tuple(accumulate(steps)),
            tuple(judged["affected"]),
            (judged["at"][0], judged["at"][1]),
        )
        for (name, symptoms, packages, published, confidence, impact, sources, steps), judged in zip(rows, conditions)
    )


def parse_terms(vocabulary: Mapping[str, int]) -> dict[str, Term]:
    return {word: Term(number, entries) for number, (word, entries) in enumerate(vocabulary.items())}
