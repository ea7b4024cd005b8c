"""Models by the names that sentences give them: ``Qwen2-7B-Instruct``, ``Llama 3.1 8B``, ``用ChatGLM3-6B微调``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._mentions import Phrase
from compatcheck.inference.model_families import family_of
from compatcheck.packages.shipped_tables import shipped_table

_SIZE = r"\d{1,3}(?:x\d{1,2})?(?:\.\d{1,2})?b(?![a-z0-9])"
_TOKEN = r"[a-z][a-z0-9]{0,20}(?:[-_.](?=[a-z0-9])[a-z0-9]{1,16}){0,9}"
_SPACED = rf"(?:[ ]v?\d(?:\.\d)?(?![\d.]*[a-z0-9])|(?:[ ]{_SIZE}))(?:[ ]{_SIZE})?"
_TAIL = r"(?:[ -](?:instruct|chat|base|it)(?![a-z0-9-]))?"
_OWNER = r"(?:(?![a-z0-9-]{0,30}\d[bm]/)[a-z][a-z0-9-]{1,30}/)?"
_MENTION = re.compile(
    rf"(?<![a-z0-9_./\\@'\"-]){_OWNER}({_TOKEN}(?:(?<=[a-z]){_SPACED}|(?<=\d)[ ]{_SIZE})?{_TAIL})"
    r"(?![a-z0-9_/\\(-]|\.[a-z0-9])",
    re.I | re.A,
)
_DIGIT = re.compile(r"\d")
_MOST = 40


def read(phrases: Iterable[Phrase]) -> Iterator[Claim]:
    """The models of published families that phrases of prose name, in the manner in which each mentions them."""
    for phrase in phrases:
        if not _DIGIT.search(phrase.text):
            continue
        for number, match in enumerate(_MENTION.finditer(phrase.text)):
            if number >= _MOST:
                break
            if _DIGIT.search(match[1]) and _begins_a_family(match[1]) and _is_model(match[1]):
                yield Claim("model.name", match[0], phrase.line, how=phrase.how, weight=phrase.manner.weight)


def _begins_a_family(name: str) -> bool:
    return name[:2].lower() in _beginnings()


@cache
def _beginnings() -> frozenset[str]:
    families = shipped_table("model-families")["families"]
    return frozenset(name[:2] for row in families for name in row["names"])


@lru_cache(maxsize=512)
def _is_model(name: str) -> bool:
    return family_of(name, shipped_table("model-families")) is not None
