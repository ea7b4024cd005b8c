"""The lines of a log that entries of the matrix know, found by the words of their patterns first.

Few of a thousand patterns have all their words in a text; only those are compiled and tried, and only on the lines
that hold their literal.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import NamedTuple

from compatcheck.environment import Location
from compatcheck.files import limits
from compatcheck.results.logs import Hit, Pattern
from compatcheck.symptoms._source_code import Quoted
from compatcheck.symptoms._tracebacks import without_prefix

_WORD = re.compile(r"[a-z0-9_]{3,}")
FLAGS = re.IGNORECASE | re.ASCII
"""In other scripts words run on: what stands beside a name is no part of it."""

_MOST_HITS = 3
_TEXT_KEPT = 300
_NARROWEST_WRAP = 45
"""A line that a terminal broke is at least so wide; it is broken within a word as well."""

_OVERLAP = 1_000
_STRANGE = re.compile(r"[^\x20-\x7e]|[&\\*]|\s\s")
_PLAIN = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b\u2032\u00b4"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201f\u300c\u300d"), '"'),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\ufeff\u00ad")),
    ord("\u3002"): ".",
    ord("\u3001"): ",",
    ord("\u2013"): "-",
    ord("\u2014"): "-",
}
_ESCAPED = re.compile(r"\\([\"'_*`<>\[\]()#])")
_STRONG = re.compile(r"\*\*(?=\w)|(?<=\w)\*\*")
_QUOTE = re.compile(r"\s*(?:>\s+)+")
_BRACKETS = re.compile(r"\[[^\[\]]{0,200}\]|\([^()]{0,200}\)")
_PROGRAM = re.compile(
    r"[\w.]*(?:Error|Exception|Warning)\b|'[^']{0,100}'|\"[^\"]{0,100}\"|\b(?:ERROR|WARN|WARNING|CRITICAL|FATAL|INFO|"
    r"error|warning|fatal|Error|Warning|Failed|rank\d+)\b|[\w./~-]*[/.][\w./~-]+(?::\d+)*"
)
_WORDS = re.compile(r"[a-z]{2}|[\u3400-\u9fff]")


class Line(NamedTuple):
    """A line to be searched. ``raised`` tells that it ends a traceback; of quoted code few patterns speak."""

    number: int
    text: str
    raised: bool = False
    quoted: Quoted | None = None


class _Text(NamedTuple):
    """A form of a line in which patterns are searched; a match must reach over ``seam``, where two lines meet."""

    line: Line
    text: str
    seam: int | None = None


class KnownLines:
    """Collects the lines that patterns match, for each entry a few."""

    def __init__(self, path: str, patterns: Sequence[Pattern]) -> None:
        self._path = path
        self._patterns = patterns
        self._by_word: dict[str, list[int]] = {}
        self._without_word: list[int] = []
        for number, pattern in enumerate(patterns):
            for word in dict.fromkeys(pattern.keys):
                self._by_word.setdefault(word, []).append(number)
            if not pattern.keys:
                self._without_word.append(number)
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._hits: dict[str, dict[int, Hit]] = {}

    def __bool__(self) -> bool:
        return bool(self._hits)

    def search(self, lines: Sequence[Line]) -> None:
        """Search the lines as they are; to be called for one part of a log after the other."""
        self._search([_Text(line, without_prefix(line.text)) for line in lines])

    def search_closely(self, lines: Sequence[Line]) -> None:
        """Search the lines of a short text, in the forms that people give to an error, and broken in two."""
        pieces = [piece for line in lines for piece in _pieces(line)]
        plain = [_plain(without_prefix(line.text)) for line in pieces]
        self._search(
            [
                *(_Text(line, form) for line, text in zip(pieces, plain) for form in _forms(line.text, text)),
                *_joins(pieces, plain),
            ]
        )

    def hits(self) -> tuple[Hit, ...]:
        """What was found, in the order of the log."""
        found = [hit for hits in self._hits.values() for hit in hits.values()]
        entries: dict[int | None, set[str]] = {}
        for hit in found:
            entries.setdefault(hit.location.line, set()).add(hit.entry)
        known = (hit._replace(others=len(entries[hit.location.line]) - 1) for hit in found)
        return tuple(sorted(known, key=lambda hit: (hit.location.line or 0, hit.entry)))

    def _search(self, texts: Sequence[_Text]) -> None:
        lowered = [each.text.lower() for each in texts]
        whole = "\n".join(lowered)
        starts = [0]
        for text in lowered:
            starts.append(starts[-1] + len(text) + 1)
        words = set(_WORD.findall(whole))
        likely = {number for word in words & self._by_word.keys() for number in self._by_word[word]}
        for number in sorted((*likely, *self._without_word)):
            pattern = self._patterns[number]
            if len(self._hits.get(pattern.entry, ())) >= _MOST_HITS:
                continue
            for index in sorted(set(_places(pattern, words, whole, starts))):
                self._try(number, texts[index])

    def _try(self, number: int, text: _Text) -> None:
        pattern, line = self._patterns[number], text.line
        found = self._hits.setdefault(pattern.entry, {}) if pattern.entry in self._hits else {}
        if line.number in found or len(found) >= _MOST_HITS:
            return
        if line.quoted and not (pattern.frame and line.quoted == "frame"):
            return
        match = self._regex(number).search(text.text)
        if match is None or (text.seam is not None and not match.start() < text.seam < match.end()):
            return
        whole = line.raised or _is_of_program(text.text[: match.start()])
        hit = Hit(pattern.entry, one_line(text.text), Location(self._path, line.number), whole=whole)
        self._hits.setdefault(pattern.entry, {})[line.number] = hit

    def _regex(self, number: int) -> re.Pattern[str]:
        if number not in self._compiled:
            self._compiled[number] = re.compile(self._patterns[number].regex, FLAGS)
        return self._compiled[number]


def one_line(text: str) -> str:
    """The line as it is shown."""
    return " ".join(without_prefix(text).split())[:_TEXT_KEPT]


def _places(pattern: Pattern, words: set[str], whole: str, starts: Sequence[int]) -> Iterator[int]:
    """The indexes of the texts that hold a literal of the pattern, or of all where it has none."""
    if not pattern.literals:
        yield from range(len(starts) - 1)
        return
    for literal, word in zip(pattern.literals, pattern.keys or pattern.literals):
        if pattern.keys and word not in words:
            continue
        at = whole.find(literal)
        while at >= 0:
            index = bisect_right(starts, at) - 1
            yield index
            at = whole.find(literal, starts[index + 1])


def _is_of_program(before: str) -> bool:
    """Whether what stands before an error on its line is what programs put there, and no sentence of a person."""
    return _WORDS.search(_PROGRAM.sub("", _BRACKETS.sub("", before))) is None


def _pieces(line: Line) -> Iterator[Line]:
    """A line that is longer than patterns are tried on, in pieces that overlap."""
    if len(line.text) <= limits.MATCHED_CHARACTERS:
        yield line
        return
    for start in range(0, len(line.text), limits.MATCHED_CHARACTERS - _OVERLAP):
        yield line._replace(text=line.text[start : start + limits.MATCHED_CHARACTERS])


def _plain(text: str) -> str:
    """The text with plain quotes, blanks and signs, as the program printed it before it was copied."""
    if not _STRANGE.search(text):
        return text
    unescaped = _STRONG.sub("", _ESCAPED.sub(r"\1", unescape(text.translate(_PLAIN)).replace("\\n", " ")))
    return " ".join(unescaped.split())


def _forms(text: str, plain: str) -> Iterable[str]:
    return dict.fromkeys((text, plain, plain.replace("`", "'")))


def _joins(lines: Sequence[Line], plain: Sequence[str]) -> Iterator[_Text]:
    """Each line with the next as one: broken at a blank, or by a terminal anywhere; wide ones with the next but one."""
    for index in range(len(lines) - 1):
        parts = [plain[index].rstrip(), *(_QUOTE.sub("", text).strip() for text in plain[index + 1 : index + 3])]
        if any(line.quoted for line in lines[index : index + 2]) or not all(parts[:2]):
            continue
        wide = len(parts[0]) >= _NARROWEST_WRAP
        ways = [parts[:2]]
        if wide and len(parts) > 2 and parts[2] and len(parts[1]) >= _NARROWEST_WRAP and not lines[index + 2].quoted:
            ways.append(parts)
        for way in ways:
            spaced = " ".join(way)
            for form in _forms(spaced, spaced):
                yield _Text(lines[index], form, len(parts[0]))
            if wide:
                yield _Text(lines[index], "".join(way), len(parts[0]))
