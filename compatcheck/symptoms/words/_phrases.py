"""The table of phrases, compiled when it is first used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from compatcheck.packages.shipped_tables import shipped_table

_GAP, _WIDE = "[^A-Z]{0,40}?", ".{0,50}?"


class Phrase(NamedTuple):
    """What says a symptom; ``reach`` is how long a match may be that has its subject in a clause before it."""

    symptom: str
    regex: re.Pattern[str]
    reach: int


class Polarity(NamedTuple):
    """What says that a symptom is not there: before it, behind it, or anywhere in its clause."""

    before: re.Pattern[str]
    after: re.Pattern[str]
    clause: re.Pattern[str]


@cache
def phrases() -> tuple[Phrase, ...]:
    rows = shipped_table("symptom-phrases")
    fill = f"(?: ?{rows['fill']}){{0,12}} ?"
    found = []
    for row in rows["phrases"]:
        joined = (
            "|".join(row["patterns"]).replace(" ~", " ?~").replace("~~", "\0").replace("~", _GAP).replace("\0", _WIDE)
        )
        found.append(Phrase(row["symptom"], re.compile(joined.replace("FILL", fill), re.ASCII), row.get("reach", 0)))
    return tuple(found)


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
