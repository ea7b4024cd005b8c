"""Packages that a sentence calls the latest, or of a repository's head, English or Chinese.

``with the latest peft``, ``transformers 最新版``; ``axolotl (main branch)``, ``installed trl from git``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compatcheck._requirement import normalised
from compatcheck.facts.reports._blocks import Line
from compatcheck.facts.reports._claims import Claim
from compatcheck.facts.reports._cues import hypothetical
from compatcheck.facts.reports._names import SPOKEN, distribution

_LONGEST = 2_000
_LATEST = r"(?:latest|newest|most recent)"
_WORD = re.compile(rf"{_LATEST}|最新(?:版本?|稳定版|发布版)?", re.I)
_NAME = (
    rf"(?<![a-z0-9_./\\@-])(?:{SPOKEN})(?![a-z0-9_./\\@-]*[a-z0-9])"
    r"(?!['’]|\s(?:models?|checkpoints?|weights|formats?|api)\b)"
)
_NAMES = rf"({_NAME}(?:\s?(?:,|&|/|、|\band\b|\bplus\b|和|与|及)\s?{_NAME})*)"
_OF = r"(?:\s(?:stable|official|pypi|pip|released?|available|versions?|releases?|of|the|hugging ?face|hf)\b)*"
_FORMS = (
    re.compile(rf"\b{_LATEST}{_OF}\s{_NAMES}", re.I),
    re.compile(rf"{_NAMES}(?:\sversions?)?\s?(?:[:：=(]|\b(?:is|are|version)\b)\s?(?:the\s)?{_LATEST}\b", re.I),
    re.compile(rf"最新(?:的|版本?|稳定版|发布版)*\s?{_NAMES}", re.I),
    re.compile(rf"{_NAMES}\s?(?:版本)?(?:[都均也]|已经?)?(?:用的)?[是为用]?\s?[:：]?\s?的?最新", re.I),
)
_HEAD = (
    r"(?:main|master|nightly)\b(?:\s(?:branch|build|version))?"
    r"(?=\s?[).,;，。]|\s*\Z|\s(?:and|with|as|of|on|at|it|this|the|fails?|i)\b)"
)
_OF_HEAD = (
    re.compile(
        rf"\b(?:latest|current|recent)\s(?:git\s)?(?:main|master|nightly)(?:\sbranch)?(?:\s(?:of|for))?(?:\sthe)?\s{_NAMES}",
        re.I,
    ),
    re.compile(
        rf"{_NAMES}(?:\sversion)?\s?(?:[:：]\s|[=(@]\s?|\b(?:is|on|from|version)\s)?(?:the\s)?(?:latest\s|current\s|git\s)?{_HEAD}",
        re.I,
    ),
    re.compile(rf"\binstalled\s{_NAMES}\s(?:directly\s)?from\s(?:git|github|main|master)\b", re.I),
    re.compile(rf"{_NAMES}\s?(?:用的?)?[是为]?\s?(?:最新)?的?\s?(?:main|master|主)\s?分支", re.I),
)
_UNRELEASED = re.compile(
    r"(?<![a-z])(?:main|master|nightly|nightlies|source|git|github|commits?|branch|dev|code|docker|image)(?![a-z])"
    r"|源码|主分支|代码|镜像",
    re.I,
)
_NOT = re.compile(r"(?:\b(?:not|n't|isn't|than|before|until)\b[\w ]{0,12}|不是?|非)\Z", re.I)


def read(lines: Iterable[Line]) -> Iterator[Claim]:
    """``report.newest`` names the distributions that are said to be the newest release, ``report.head`` the others."""
    for line in lines:
        rest = _WORD.sub(" ", line.plain)
        if len(rest) > _LONGEST or hypothetical(rest):
            continue
        if _UNRELEASED.search(rest):
            yield from _named(_OF_HEAD, line, "report.head")
        elif rest != line.plain:
            yield from _named(_FORMS, line, "report.newest")


def _named(forms: Iterable[re.Pattern[str]], line: Line, path: str) -> Iterator[Claim]:
    for match in (match for form in forms for match in form.finditer(line.plain)):
        if _NOT.search(line.plain[: match.start()]):
            continue
        for name in re.findall(SPOKEN, match[1], re.I):
            if named := distribution(name):
                yield Claim(f"{path}.{normalised(named)}", True, line.number)
