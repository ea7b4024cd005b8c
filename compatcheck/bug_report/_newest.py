"""Packages that a sentence calls the latest, English or Chinese: ``with the latest peft``, ``transformers 最新版``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._mentions import Phrase
from compatcheck.bug_report._names import distribution, spoken_in
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.packages.names import normalised

_LONGEST, _MOST = 400, 3
_BEFORE, _AFTER = 100, 160
_WORD = LazyPattern(
    r"\b(?:latest|newest|most recent)\b|最新(?:版本?|稳定版|发布版)?",
    re.I | re.A,
    marks=(
        "latest",
        "newest",
        "most recent",
        "最新",
    ),
)
_END = (
    r"(?![a-z0-9_./\\@-]*[a-z0-9])"
    r"(?!['’]|\s(?:models?|checkpoints?|weights|formats?|api|prs?|pull|configs?|blog|examples?|scripts?|runs?|docs?)\b)"
)
_OF = r"(?:\s(?:stable|official|pypi|pip|released?|available|versions?|releases?|of|the|hugging ?face|hf)\b){0,4}"
_UNRELEASED = re.compile(
    r"(?<![a-z])(?:main|master|nightly|nightlies|source|git|github|commits?|branch|dev|code|docker|image)(?![a-z])"
    r"|源码|主分支|代码|镜像",
    re.I | re.A,
)
_NOT = re.compile(
    r"(?:(?:n't|\b(?:not|than|before|until|without|avoid|gone|second))\b[\w ]{0,16}|不是?|非|没有?|没用|别用?|不要)\Z",
    re.I | re.A,
)
_NEXT = LazyPattern(
    r"\s(?:but one|commit|main)\b|一次",
    re.I | re.A,
    marks=(
        "but one",
        "commit",
        "main",
        "一次",
    ),
)


class _Places(NamedTuple):
    """The names behind the word for the newest, those ahead of it, and each of them."""

    behind: re.Pattern[str]
    ahead: re.Pattern[str]
    name: re.Pattern[str]


@lru_cache(64)
def _places(spoken: str) -> _Places:
    name = rf"(?<![a-z0-9_./\\@-])(?:{spoken}){_END}"
    names = rf"({name}(?:\s?(?:,|&|/|、|\band\b|\bplus\b|和|与|及)\s?{name}){{0,8}})"
    return _Places(
        re.compile(rf"(?:{_OF}\s|(?:的|版本?|稳定版|发布版){{0,2}}\s?){names}", re.I | re.A),
        re.compile(
            rf"{names}(?:(?:\sversions?)?\s?(?:[:：=(]|\b(?:is|are|version)\b)\s?(?:the\s)?"
            r"|\s?(?:版本)?(?:[都均也]|已经?)?(?:用的)?[是为用]?\s?[:：]?\s?的?)\Z",
            re.I | re.A,
        ),
        re.compile(spoken, re.I | re.A),
    )


def read(phrases: Iterable[Phrase]) -> Iterator[Claim]:
    """The distributions that are said to be the newest release; of builds from a repository that says nothing."""
    for phrase in phrases:
        rest = _WORD.sub(" ", phrase.text)
        if rest == phrase.text or len(rest) > _LONGEST or _UNRELEASED.search(phrase.sentence) or phrase.manner.moves:
            continue
        for name in _newest_names(phrase.text):
            yield Claim(f"report.newest.{normalised(name)}", True, phrase.line, how=phrase.how)


def _newest_names(sentence: str) -> Iterator[str]:
    places = _places(spoken_in(sentence))
    for word in islice(_WORD.finditer(sentence), _MOST):
        before, after = sentence[max(word.start() - _BEFORE, 0) : word.start()], sentence[word.end() :][:_AFTER]
        if _NEXT.match(after):
            continue
        behind, ahead = places.behind.match(after), places.ahead.search(before)
        for match, said in ((behind, before), (ahead, before[: ahead.start()] if ahead else "")):
            if match and not _NOT.search(said):
                yield from (name for each in places.name.findall(match[1]) if (name := distribution(each)))
