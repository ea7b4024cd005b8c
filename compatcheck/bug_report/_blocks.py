"""A text as blocks: what stands in one code fence, and what stands between fences and headings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compatcheck.bug_report._html import BREAK
from compatcheck.files import limits
from compatcheck.files.lazy_patterns import LazyPattern

_SHORT = 400
_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,30}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-_])")
_FENCE = re.compile(r"\s{0,12}(?:[-*]\s)?(`{3,}|~{3,})\s*([\w+.-]*)")
_QUOTE = re.compile(r"\s{0,3}(?:>\s?)+")
_TAG = re.compile(
    r"</?(?:details|summary|pre|code|br|p|b|i|li|ul|ol|div|span|td|tr|table|tbody|th)\b[^<>]{0,200}>", re.I
)
_HEADING = re.compile(r"#{1,6}\s(?!\s)")
_RANK = LazyPattern(
    r"\s{0,8}(?:\[(?:rank|default)\d+\]:|\(\w{1,30} pid=\d+\))\s?",
    re.I,
    marks=(
        "rank",
        "default",
        " pid=",
    ),
)
_MARKER = re.compile(r"\s*(?:[-*+•·●]\s*|\d{1,2}[.)、]\s+|\[[+x ]\]\s*|#\s+)+")
_LINK = LazyPattern(r"\b(?:https?|ftp|git\+\w{3,5})://[^\s<>()\[\]\"'`，。；、]{1,2000}", marks=("://",))
_FULL_WIDTH = str.maketrans({"，": ", ", "：": ": ", "；": "; "})
_EMPHASIS = str.maketrans("", "", "`\u200b\ufeff")


class Line(NamedTuple):
    """One line: its number from 1, its text, and that text without links and marks of Markdown."""

    number: int
    text: str
    plain: str


class Block(NamedTuple):
    """Lines that stand together, blank ones left out; ``lead`` and ``tail`` are the words around a fence."""

    lines: tuple[Line, ...]
    fenced: bool = False
    language: str = ""
    lead: str = ""
    tail: str = ""

    def short(self) -> Iterator[Line]:
        """The lines that are no longer than those of a table or a list ever are."""
        return (line for line in self.lines if len(line.text) <= _SHORT)


def split(text: str) -> tuple[Block, ...]:
    """The blocks of a text, without terminal colours, quotation marks and HTML comments; numbers stay true."""
    blocks: list[Block] = []
    kept: list[Line] = []
    fence, language, depth = "", "", 0

    def close() -> None:
        if any(line.plain for line in kept):
            blocks.append(Block(tuple(kept), bool(fence), language))
        kept.clear()

    for number, raw, quoted in _lines(text):
        mark = _FENCE.match(raw)
        if fence and (quoted < depth or (mark and mark[1].startswith(fence) and not mark[2])):
            close()
            fence, language = "", ""
            if mark:
                continue
        elif mark and not fence:
            close()
            fence, language, depth = mark[1], mark[2].lower(), quoted
            continue
        elif not fence and _HEADING.match(raw) and not raw.startswith(("# packages in", "# Name ")):
            close()
        if raw:
            kept.append(Line(number, raw, _plain(raw)))
    close()
    return tuple(_with_surroundings(blocks))


def _with_surroundings(blocks: list[Block]) -> Iterator[Block]:
    for index, block in enumerate(blocks):
        if not block.fenced:
            yield block
            continue
        before = blocks[index - 1] if index and not blocks[index - 1].fenced else None
        after = blocks[index + 1] if index + 1 < len(blocks) and not blocks[index + 1].fenced else None
        lead = _nearest(reversed(before.lines)) if before else ""
        yield block._replace(lead=lead, tail=_nearest(after.lines) if after else "")


def _nearest(lines: Iterable[Line]) -> str:
    return next((line.plain for line in lines if line.plain), "")


def _lines(text: str) -> Iterator[tuple[int, str, int]]:
    """Number, text and depth of quotation of each line; comments of a template are blanked out."""
    inside = False
    for number, raw in _numbered(text):
        line = raw[: limits.REPORT_LINE_CHARACTERS].replace("\r", " ").rstrip()
        if "\x1b" in line:
            line = _ANSI.sub("", line)
        line = unicodedata.normalize("NFKC", line.translate(_FULL_WIDTH))[: limits.REPORT_LINE_CHARACTERS]
        line, inside = _without_comment(line, inside)
        if "<" in line:
            line = _TAG.sub(" ", line)
        quote = _QUOTE.match(line) if line.lstrip().startswith(">") and not line.startswith(">>>") else None
        line = _RANK.sub("", line[quote.end() :] if quote else line, count=1)
        yield number, line.rstrip(), quote[0].count(">") if quote else 0


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; of HTML several may stand in one."""
    for number, raw in enumerate(text.split("\n") if "\n" in text else text.split("\r"), 1):
        yield from ((number, part) for part in (raw.split(BREAK) if BREAK in raw else (raw,)))


def _without_comment(line: str, inside: bool) -> tuple[str, bool]:
    kept = ""
    while True:
        if inside:
            _, end, line = line.partition("-->")
            if not end:
                return kept, True
            inside = False
        before, start, line = line.partition("<!--")
        kept += before
        if not start:
            return kept, False
        inside = True


def _plain(text: str) -> str:
    text = _LINK.sub(" ", text) if "://" in text else text
    bare = text.strip().strip("|").replace("|", "  ").replace("**", "").translate(_EMPHASIS)
    marker = _MARKER.match(bare)
    return " ".join(bare[marker.end() if marker else 0 :].split())
