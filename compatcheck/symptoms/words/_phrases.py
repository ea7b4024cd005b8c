"""The table of phrases, compiled when it is first used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from compatcheck.packages.shipped_tables import shipped_table

_GAP, _WIDE = "[^A-Z]{0,40}?", ".{0,50}?"


_ESCAPED, _GROUP = re.compile(r"\\."), re.compile(r"\([^()]*\)(?:[?*]|\{[^}]*\})?")
_TOKEN = re.compile(r"\b[A-Z]{3,}\b(?!\?)")


class Way(NamedTuple):
    """One way to say a symptom: the tokens without which it is not said, and the expression."""

    tokens: frozenset[str]
    regex: str


@lru_cache(maxsize=16)
def _tokens(clause: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(clause))


class Phrase(NamedTuple):
    """What says a symptom; ``reach`` is how long a match may be that has its subject in a clause before it."""

    symptom: str
    ways: tuple[Way, ...]
    reach: int

    def search(self, clause: str) -> re.Match[str] | None:
        """The first match in a clause of tokens; of those that start alike, that of the first way."""
        said, first = _tokens(clause), None
        for way in self.ways:
            match = _compiled(way.regex).search(clause) if way.tokens <= said else None
            if match and (first is None or match.start() < first.start()):
                first = match
        return first


class Polarity(NamedTuple):
    """What says that a symptom is not there: before it, behind it, or anywhere in its clause."""

    before: re.Pattern[str]
    after: re.Pattern[str]
    clause: re.Pattern[str]


@cache
def phrases() -> tuple[Phrase, ...]:
    rows = shipped_table("symptom-phrases")
    fill = f"(?: ?{rows['fill']}){{0,12}} ?"
    return tuple(
        Phrase(row["symptom"], tuple(_way(pattern, fill) for pattern in row["patterns"]), row.get("reach", 0))
        for row in rows["phrases"]
    )


def _way(pattern: str, fill: str) -> Way:
    spelt = pattern.replace(" ~", " ?~").replace("~~", "\0").replace("~", _GAP).replace("\0", _WIDE)
    return Way(_needed(pattern.replace("FILL", " ")), spelt.replace("FILL", fill))


def _needed(pattern: str) -> frozenset[str]:
    """The tokens that stand in every match: those outside of groups and choices."""
    text = _ESCAPED.sub(" ", pattern)
    while (shorter := _GROUP.sub(" ", text)) != text:
        text = shorter
    return frozenset(() if "|" in text else _TOKEN.findall(text))


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    """Compiled where a clause has its tokens: most texts need few of two hundred."""
    return re.compile(regex, re.ASCII)


@cache
def polarity() -> Polarity:
    rows = shipped_table("symptom-phrases")["polarity"]
    return Polarity(*(_any_of(rows[name]) for name in Polarity._fields))


@cache
def pleas() -> re.Pattern[str]:
    return _any_of(shipped_table("symptom-phrases")["polarity"]["strip"])


@cache
def changes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, _any_of(regexes)) for name, regexes in shipped_table("symptom-phrases")["changes"].items())


@cache
def _token_regex() -> re.Pattern[str]:
    tokens = shipped_table("symptom-phrases")["tokens"]
    return re.compile("|".join(f"(?P<{name}>{regex})" for name, regex in tokens.items()), re.ASCII)


def tokenised(text: str) -> str:
    """The clause with each group of words that mean the same as one word in capitals."""
    return " ".join(_token_regex().sub(lambda match: f" {match.lastgroup} ", text).split())


def _any_of(regexes: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{regex})" for regex in regexes), re.ASCII)
