"""Several reports in one text: each begins with its number, or fills in the template of a repository once more."""

from __future__ import annotations

import re

from compatcheck.files.lazy_patterns import LazyPattern

_NUMBERED = LazyPattern(
    r"\W{0,12}(?:bug )?(?:report|issue|case|报告|案例|问题)\s{0,2}(?:#|no\.?|number|[:：])?\s{0,2}(\d{1,6})\W{0,12}\Z",
    re.I,
    marks=(
        "report",
        "issue",
        "case",
        "报告",
        "案例",
        "问题",
    ),
)
_HEADING = re.compile(r"#{1,6}\s{1,4}(\S.{0,80})\Z|\*\*([^*]{2,80})\*\*:?\s{0,4}\Z")
_LINE = re.compile(r"\s{0,4}(?:-{3,80}|={3,80}|\*{3,80}|_{3,80})\s{0,4}\Z")
_FENCE = re.compile(r"\s{0,12}(?:`{3,}|~{3,})")
_FEWEST_REPEATED = 2


def reports_in(text: str) -> list[str]:
    """The reports of a text, each with empty lines before it, so that its lines keep their numbers."""
    lines = text.split("\n")
    starts = _numbered(lines) or _templates(lines)
    if len(starts) < 2:
        return [text]
    ends = [*starts[1:], len(lines)]
    return ["\n" * start + "\n".join(lines[start:end]) for start, end in zip(starts, ends)]


def _numbered(lines: list[str]) -> list[int]:
    """Where lines are that hold no more than ``Report 2``, each with a number of its own."""
    found = [(index, match[1]) for index, line in enumerate(lines) if (match := _NUMBERED.match(line[:80]))]
    numbers = [number for _, number in found]
    return [index for index, _ in found] if len(found) > 1 and len({*numbers}) == len(numbers) else []


def _templates(lines: list[str]) -> list[int]:
    """Where a template begins, if at least two of its headings stand there equally often, and the first comes first."""
    places: dict[str, list[int]] = {}
    fenced = False
    for index, line in enumerate(lines):
        if _FENCE.match(line[:40]):
            fenced = not fenced
        elif not fenced and (match := _HEADING.match(line[:120].rstrip())):
            places.setdefault((match[1] or match[2]).strip(" #:").lower(), []).append(index)
    repeated = [found for found in places.values() if len(found) > 1]
    if len(repeated) < _FEWEST_REPEATED or len({len(found) for found in repeated}) != 1:
        return []
    first = repeated[0]
    turns = list(zip(first, [*first[1:], len(lines)]))
    if not all(start <= found[number] < end for found in repeated for number, (start, end) in enumerate(turns)):
        return []
    last = [max(found[number] for found in repeated) for number in range(len(first))]
    return [0, *(_separator(lines, before, start) for before, start in zip(last, first[1:]))]


def _separator(lines: list[str], before: int, start: int) -> int:
    """Where the second of two templates begins: at the line drawn between them, else at its heading."""
    drawn = [index for index in range(before + 1, start) if _LINE.match(lines[index][:90])]
    return drawn[-1] if drawn else start
