"""The words of a text by which it is compared with entries: identifiers, words, and pairs of Chinese characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*|[\u4e00-\u9fff]+|\d+\.\d+[\w.]*")
_SPLIT = re.compile(r"[.\-]")
_SHORTEST = 3


def terms(text: str) -> frozenset[str]:
    """The distinct terms of a text, in lower case."""
    return frozenset(_terms(text))


def _terms(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match[0]
        if word[0] >= "\u4e00":
            yield from (word[at : at + 2] for at in range(len(word) - 1))
            continue
        low = word.lower()
        if len(low) >= _SHORTEST:
            yield _stem(low)
        if "." in low or "-" in low:
            yield from (part for part in _SPLIT.split(low) if len(part) >= _SHORTEST)


@cache
def _stem(word: str) -> str:
    """The word without the ending of a plural, a participle or a gerund, where it is no identifier."""
    if not word.isalpha() or len(word) < 6:
        return word
    for ending in ("ing", "ied", "ies", "ed", "es", "s"):
        if word.endswith(ending) and not word.endswith("ss"):
            return word[: -len(ending)]
    return word


def is_identifier(term: str) -> bool:
    """Whether a term is a name of a program's own rather than a word."""
    return "_" in term.strip("_") or "." in term or any(letter.isdigit() for letter in term)
