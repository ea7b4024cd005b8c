"""What `pip list` and `uv pip list` print: a table of names and versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.bug_report._names import distribution, plausible
from compatcheck.files.lazy_patterns import LazyPattern

TITLE = "pip list"
TYPED = True
_HEADER = LazyPattern(
    r"\s*Package\s+Version(?:\s+(?:Editable project location|Location|Installer).*)?\s*\Z", marks=("package",)
)
_ROW = re.compile(r"\s*([A-Za-z0-9][\w.-]{0,80})\s+(v?\d[\w.+!-]{0,80})(\s+(?:/|[A-Z]:\\|~)\S{0,300})?\s*\Z")
_FEWEST_WITHOUT_HEADER = 2
_FEWEST_WHOLE = 30
_CUT = re.compile(r"\s*(?:\.{2,}|…+|\[\.\.\.\])\s*\Z")


def recognises(block: Block) -> tuple[Line, ...]:
    """The rows; without the table's head, only where several stand together and most names are known."""
    lines = list(block.short())
    rows = tuple(line for line in lines if _row(line))
    headed = tuple(line for line in lines if _HEADER.match(line.text))
    if not headed:
        known = sum(distribution(_name(line)) is not None for line in rows)
        return rows if len(rows) >= _FEWEST_WITHOUT_HEADER and known * 2 >= len(rows) else ()
    whole = not any(_CUT.match(line.text) for line in lines)
    return (*headed[:1], *rows) if whole else rows


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    names = []
    for line in lines:
        match = _row(line)
        if match:
            names.append(match[1].lower())
            yield distribution_claim(match[1], match[2], line.number)
    if lines and _HEADER.match(lines[0].text) and _is_whole(names):
        yield Claim("distributions_complete", True, lines[0].number)


def _is_whole(names: Sequence[str]) -> bool:
    """Whether a list looks like all of it: long, in the order of the alphabet, and from one end of it to the other."""
    ordered = sum(one <= other for one, other in zip(names, names[1:])) >= 0.97 * (len(names) - 1)
    return len(names) >= _FEWEST_WHOLE and ordered and names[0] < "d" and names[-1] > "w" and "pip" in names


def _row(line: Line) -> re.Match[str] | None:
    match = _ROW.match(line.text.replace("|", " ") if line.text.lstrip().startswith("|") else line.text)
    return match if match and "." in match[2] and plausible(match[1]) else None


def _name(line: Line) -> str:
    match = _row(line)
    return match[1] if match else ""
