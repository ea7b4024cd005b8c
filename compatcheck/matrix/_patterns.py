"""Error patterns in the form that a search reads: with the texts and the words that tell which may match at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compatcheck.matrix._regex import literals, without_name

if TYPE_CHECKING:
    from compatcheck.matrix.entry import Entry, ErrorPattern

_WORD = re.compile(r"(?<=[^a-z0-9_])[a-z0-9_]{3,}(?=[^a-z0-9_])")
"""A whole word of a text that may go on at both its ends."""


def compile_patterns(entries: Sequence[Entry], vocabulary: Mapping[str, int]) -> list[list[object]]:
    """For each pattern its entry, expression, literals, key words, and whether it matches the frames of a traceback.

    A line that a pattern matches holds one of its literals, and each literal the key word at the same place among the
    ``keys``: the word that the fewest patterns and entries hold. A pattern with a literal without a whole word has no
    keys.
    """
    known = [(entry.id, pattern, _expression(pattern)) for entry in entries for pattern in entry.error_patterns]
    held = [literals(regex) for _, _, regex in known]
    counts = Counter(vocabulary)
    counts.update(word for texts in held for word in {word for text in texts for word in _WORD.findall(text)})
    return [
        [name, regex, texts, _keys(texts, counts), pattern.example.startswith("  ")]
        for (name, pattern, regex), texts in zip(known, held)
    ]


def _expression(pattern: ErrorPattern) -> str:
    return without_name(pattern.regex, pattern.not_examples)


def _keys(texts: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    words = [_WORD.findall(text) for text in texts]
    if not words or not all(words):
        return []
    return [min(each, key=lambda word: (counts[word], word)) for each in words]
