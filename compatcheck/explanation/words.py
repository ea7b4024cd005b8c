"""How alike a text is to the texts of entries: BM25 over their words.

https://doi.org/10.1561/1500000019 section 3; a word counts less the more often it stands in the same text, on both
sides, and the more entries hold it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compatcheck import matrix
from compatcheck.matrix.rows import Postings, parse_posting

_SATURATION, _LENGTH, _QUERY = 1.2, 0.75, 2.0
_LITTLE = 8.0
"""A score that a few words in common give by chance."""


class Likeness(NamedTuple):
    """The scores of rows by number, those of identifiers alone, and the highest score that any text could have."""

    scores: Mapping[int, float]
    identifiers: Mapping[int, float]
    bound: float
    bound_of_identifiers: float
    best: float

    def share(self, number: int) -> float:
        """The score of a row as a share of the highest possible."""
        return self.scores.get(number, 0.0) / self.bound if self.bound else 0.0

    def of_best(self, number: int) -> float:
        """The score of a row as a share of the best row's, less where even that one is little alike."""
        return self.scores.get(number, 0.0) / (self.best + _LITTLE)

    def share_of_identifiers(self, number: int) -> float:
        """The same of identifiers alone."""
        return self.identifiers.get(number, 0.0) / self.bound_of_identifiers if self.bound_of_identifiers else 0.0


class Words:
    """The words of all rows."""

    def __init__(self, postings: Postings, lengths: Sequence[int]) -> None:
        self._postings = postings
        self._count = len(lengths)
        mean = sum(lengths) / max(len(lengths), 1)
        self._penalty = [_SATURATION * (1 - _LENGTH + _LENGTH * length / mean) for length in lengths]

    def compare(self, text: str) -> Likeness:
        """How alike the rows are to a text."""
        scores: dict[int, float] = {}
        identifiers: dict[int, float] = {}
        bound = bound_of_identifiers = 0.0
        penalty = self._penalty
        for word, count in Counter(matrix.split_words(text)).items():
            found = self._postings.get(word)
            if found is None:
                continue
            rows = parse_posting(found)
            weight = math.log(1 + (self._count - len(rows) + 0.5) / (len(rows) + 0.5))
            weight *= (_SATURATION + 1) * count * (_QUERY + 1) / (count + _QUERY)
            bound += weight
            named = is_identifier(word)
            bound_of_identifiers += weight * named
            for row, often in rows:
                share = weight * often / (often + penalty[row])
                scores[row] = scores.get(row, 0.0) + share
                if named:
                    identifiers[row] = identifiers.get(row, 0.0) + share
        return Likeness(scores, identifiers, bound, bound_of_identifiers, max(scores.values(), default=0.0))


def is_identifier(word: str) -> bool:
    """Whether a word is a name of a program's own, or a version."""
    return "_" in word.strip("_") or any(letter.isdigit() for letter in word)
