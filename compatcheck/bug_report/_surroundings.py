"""How lines are mentioned by what stands around them: a heading, an announcement, the words beside a fence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._cues import signs
from compatcheck.bug_report._mentions import manner_of
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.results.cases import FACTUAL, How

_SMALL = 8
_NEAR = 2
_LONGEST_HEADING = 60
_BELOW = LazyPattern(
    r"\b(?:below|following|these)\b|如下|下面|以下",
    re.I,
    marks=(
        "below",
        "following",
        "these",
        "如下",
        "下面",
        "以下",
    ),
)
_ITEM = re.compile(r"\s{0,12}(?:[-*+•]|\d{1,2}[.)、])\s")
_HELPED = re.compile(
    r"\b(?:this|that|it|these|which|now|everything)\b.{0,40}\b(?:works?|worked|fixed|solved|resolved|helped)\b"
    r"|\bfixed it\b|\bworks (?:fine|well|for me)|解决了|可以了|没问题|正常了|跑通",
    re.I,
)
_GIVEN = re.compile(
    r"\b(?:my|our|current|the)\b.{0,30}\b(?:env\w*|versions?|setup|set-up|system|list)\b|我的|环境|版本信息", re.I
)
_ENVIRONMENT = re.compile(
    r"\b(?:env\w*|versions?|setup|set-up|system|machine|packages?|stack|combination|config\w*|server|node|releases?)\b"
    r"|环境|版本|配置|机器|组合|\A\W{0,4}(?:working|works?|broken|fails?|failing|bad|good|before|after|old"
    r"|new)\W{0,4}\Z",
    re.I,
)
_OLD = re.compile(r"\b(?:old|older|previous|before|former|original|earlier)\b|[老旧原]|之前|以前", re.I)
_NEW = re.compile(r"\b(?:new|newer|current|after|now|updated|upgraded)\b|新|现在|升级后|目前|当前", re.I)
_ADVICE = re.compile(
    r"\b(?:solutions?|workarounds?|recommendations?|suggestions?|best practices?|prevention|tips|how to (?:fix"
    r"|solve))\b"
    r"|解决|方案|建议|措施|最佳实践|优化|推荐",
    re.I | re.A,
)
_SECTION = re.compile(r"[^\d,.;:!?。、()\[\]{}=<>`'\"|/\\-]{2,24}\Z")
_ROW = re.compile(r"\d+\.\d|==|\b[avhlb]\d{2,3}\b", re.I)


def announces(text: str) -> bool:
    """Whether a line speaks of the lines that follow it."""
    return text.endswith(":") or _BELOW.search(text) is not None


def headed_manners(blocks: Sequence[Block]) -> dict[int, How]:
    """How each line is mentioned that stands below the heading of an environment, or in a fence behind one."""
    headings = {line.number: line.plain for block in blocks if not block.fenced for line in block.lines}
    headings = {number: text for number, text in headings.items() if _is_heading(text)}
    both = any(_OLD.search(text) for text in headings.values()) and any(_NEW.search(text) for text in headings.values())
    hows = {number: how for number, text in headings.items() if (how := _environment(text, both))}
    found: dict[int, How] = {}
    current: How | None = None
    for block in blocks:
        if block.fenced:
            if current and _is_heading(block.lead):
                found.update(dict.fromkeys((line.number for line in block.lines), current))
            continue
        for line in block.lines:
            if line.number in headings:
                current = hows.get(line.number)
            elif current and not _is_row(line):
                current = None
            elif current:
                found[line.number] = current
    return found


def _is_heading(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_HEADING and not _ROW.search(text) and _ENVIRONMENT.search(text) is not None


def _environment(text: str, both: bool) -> How | None:
    one = signs(text)
    works = one.works or re.search(r"\b(?:good|working)\b", text, re.I)
    fails = one.fails or one.trouble or re.search(r"\b(?:bad|broken|failing)\b", text, re.I)
    if bool(works) != bool(fails):
        return "worked" if works else "failed"
    if both and not works:
        old, new = _OLD.search(text), _NEW.search(text)
        return "worked" if old and not new else "failed" if new and not old else None
    return None


def _is_row(line: Line) -> bool:
    return len(line.plain) <= 120 and _ROW.search(line.plain) is not None


def announced_manners(block: Block) -> dict[int, How]:
    """The lines below a heading of advice, and items that an announcement says to be tried or advised."""
    found: dict[int, How] = {}
    how: How = "stated"
    advice = False
    for line in block.lines:
        item = _ITEM.match(line.text) is not None
        if not item and _SECTION.match(line.plain.rstrip(":")):
            heads = _ADVICE.search(line.plain) is not None and line.number > 1
            advice = heads or (advice and line.plain.endswith(":"))
        if advice:
            found[line.number] = "advised"
        elif not item:
            how = manner_of(line.plain) if announces(line.plain) else "stated"
        elif how not in FACTUAL:
            found[line.number] = how
    return found


def lead_manner(block: Block, lines: Sequence[Line]) -> dict[int, How]:
    """How some few lines of prose are mentioned by the line before them, where that announces them."""
    if block.fenced or len(lines) > _SMALL:
        return {}
    before = [line.plain for line in block.lines if 0 < lines[0].number - line.number <= _NEAR][-1:]
    hows = [manner_of(text) for text in before if announces(text)]
    return {line.number: how for how in hows if how not in FACTUAL for line in lines}


def fence_manner(block: Block) -> How | None:
    """How the content of a fence is mentioned by the words around it, None where it is the reporter's own."""
    if len(block.lines) <= _SMALL and _HELPED.search(block.tail):
        return "worked"
    if not block.lead or _GIVEN.search(block.lead):
        return None
    how = manner_of(block.lead)
    return None if how in (*FACTUAL, "asked") else how
