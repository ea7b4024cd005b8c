"""Which published family a model's name belongs to, word by word, and what is known of all its models."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

_WORD = re.compile(r"a\d+(?:\.\d+)?b(?![a-z\d])|\d+(?:x\d+)?(?:\.\d+)?[bm](?![a-z\d])|[a-z]+|\d+(?:\.\d+)*")
_BITS = re.compile(r"(?<![a-z\d.])\d{1,2}[-_ ]?bits?(?![a-z\d])")
_SIZE = re.compile(r"\d+(?:x\d+)?(?:\.\d+)?[bm]")
_ACTIVE = re.compile(r"a\d+(?:\.\d+)?b")
_DATE = re.compile(r"\d{4}|20\d{6}")
_NUMBERED = ("v", "int", "fp", "nf")
_CLASS = re.compile(r"([A-Z][A-Za-z0-9_]*?)(?:For[A-Z][A-Za-z]+|LMHeadModel)")
_LOCAL = ("/", ".", "~", "\\")


def family_of(name: str, table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The row of the family, or None for a name that is of none, of several, or a place on disk.

    Of quantised weights the dtype is another than the family's, and the row lacks it.
    """
    if name.startswith(_LOCAL) or name.count("/") > 1 or "\\" in name or " / " in name:
        return None
    words = _words(name.rpartition("/")[2])
    said = {*table["neutral"], *table["quantised"]}
    best: tuple[int, Mapping[str, Any]] | None = None
    for row in table["families"]:
        for pattern in row["names"]:
            wanted = _words(pattern)
            if wanted[:1] != words[:1] and not wanted[0].startswith("{"):
                continue
            if (best is None or len(wanted) > best[0]) and _belongs(words, wanted, said):
                best = len(wanted), row
    if best and not set(words).isdisjoint(table["quantised"]):
        return {key: value for key, value in best[1].items() if key != "torch_dtype"}
    return best[1] if best else None


def rows_of(name: str, table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The row of the family, and those of ``published`` that name this very model."""
    family = family_of(name, table)
    return [*([family] if family else []), *(row for row in table.get("published", ()) if name in row["names"])]


def type_of_class(name: str, table: Mapping[str, Any]) -> str | None:
    """``llama`` of LlamaForCausalLM: the one type known to transformers whose letters and numbers a class has."""
    match = _CLASS.fullmatch(name)
    if match is None:
        return None
    stem = match[1].replace("_", "").lower()
    types = [each for each in {**table["first"], **table["last"]} if re.sub(r"[-_]", "", each) == stem]
    return types[0] if len(types) == 1 else None


@functools.cache
def _words(text: str) -> list[str]:
    """The words of a name or a pattern: letters and numbers apart, sizes whole, ``2_5`` as 2.5, ``4bit`` as bit."""
    marked = re.split(r"(\{\w+\})", re.sub(r"(?<=\d)_(?=\d)", ".", _BITS.sub("bit", text.lower())))
    return [word for part in marked for word in ([part] if part.startswith("{") else _WORD.findall(part))]


def _belongs(words: list[str], wanted: list[str], neutral: set[str]) -> bool:
    if len(words) < len(wanted) or not all(map(_is, words, wanted)):
        return False
    after = zip(words[len(wanted) - 1 :], words[len(wanted) :])
    return all(_says_nothing(word, before, neutral) for before, word in after)


def _is(word: str, wanted: str) -> bool:
    if wanted == "{size}":
        return _SIZE.fullmatch(word) is not None
    return _ACTIVE.fullmatch(word) is not None if wanted == "{active}" else word == wanted


def _says_nothing(word: str, before: str, neutral: set[str]) -> bool:
    """Whether a word tells no more than a size, a date, a version's number or a way of tuning."""
    numbered = _is_number(word) and (before in _NUMBERED or _is_number(before))
    return word in neutral or numbered or bool(_SIZE.fullmatch(word) or _DATE.fullmatch(word))


def _is_number(word: str) -> bool:
    return word.replace(".", "").isdigit()
