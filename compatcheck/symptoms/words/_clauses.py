"""The clauses of what a person wrote: no code, no lines that a program printed, no quotations."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"\s*(?:```|~~~)")
_MACHINE = re.compile(
    r"""\s*(?:>|\||\$\ |\#\ ?!|>>>|\{['"]|File\ "|Traceback\b|\[?rank ?\d|\[\d
    |\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[IWEF]\d{4}\b|\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL|CRITICAL)\b|[A-Z]{1,4}\d{4,6}:|[\w.]*(?:Error|Exception|Warning)\b\s*:|(?:import|from)\s+[\w.]+\s*(?:import\b|$)|\d+%\|)""",
    re.VERBOSE,
)
_CODE = re.compile(
    r"""\s*(?:[A-Z_]+=\S*\s+)*(?:export\s+\w+=|(?:pip3?|conda|uv|docker|nohup|srun|mpirun|torchrun|accelerate|deepspeed|python3?|bash|sh)\s+
    (?:-|\S+\.(?:py|txt|sh)\b|run\b|launch\s+-|install\s+\S*[-=\d])|--\w|[fr]?["'][^"']*["'],?\s*\Z|raise\s|assert\s|return\s|def\s|class\s
    |self\.|@\w|\S+\s*=\s*\S+\(|\S.*\\\s*\Z)""",
    re.VERBOSE,
)
_SHAPE = re.compile(r"(?<=\w)\(\[[\d, ]*\]\)")
_ENDS = re.compile(r"[.。!！?？:：;；]\s*\Z")
_MARKUP = re.compile(r"[`*\"“”‘’「」《》]|(?<!\w)'|'(?!\w)")
_CUT = re.compile(
    r",(?!\d{3}\b)|[;、\[\]→\n]|\((?!\))|(?<!\()\)|(?P<end>[。!?]+|\.+(?=\s|\Z))|:(?!\s*(?:-?\d[\d.]*|nan|inf|none)\b)(?=\s|\Z|[^\x00-\x7f])|\s[-–]+\s|—+|=>|"
    r"\b(?:but|however|whereas)\b|但是?|(?<!编译)(?<!通)(?<!跑)不过|然而|可是|却|而(?!不是|言|且|已)",
    re.ASCII | re.IGNORECASE,
)
_LONGEST = 400
_MOST_JOINED = 12


class Clause(NamedTuple):
    """A clause in lower case, as it was written, and its line; ``sentence`` is the same for clauses of one sentence."""

    text: str
    written: str
    line: int
    sentence: int


class _Paragraph(NamedTuple):
    text: str
    starts: tuple[tuple[int, int], ...]
    """Where each of its lines begins in the text, and its number."""


def clauses(text: str) -> Iterator[Clause]:
    """The clauses in the order of the text."""
    sentence = 0
    for paragraph in _paragraphs(text):
        sentence += 1
        at = 0
        for cut in (*_CUT.finditer(paragraph.text), None):
            end = cut.start() if cut else len(paragraph.text)
            written = paragraph.text[at:end].strip()
            if written:
                ending = cut["end"] if cut and cut["end"] else ""
                line = next(number for start, number in reversed(paragraph.starts) if start <= at)
                plain = " ".join(_MARKUP.sub("", written.lower()).split())
                yield Clause((plain + ("?" if "?" in ending else ""))[:_LONGEST], written, line, sentence)
            if cut:
                at = cut.end()
                sentence += cut["end"] is not None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number; what a copied page or a progress bar holds in one line comes in pieces."""
    for number, line in enumerate(text.split("\n"), 1):
        yield from ((number, piece) for piece in line.splitlines() or ("",))


def _paragraphs(text: str) -> Iterator[_Paragraph]:
    """Lines that are broken within a sentence are joined."""
    parts: list[str] = []
    starts: list[tuple[int, int]] = []
    fenced = False
    for number, line in _lines(text):
        fence = _FENCE.match(line)
        fenced ^= fence is not None
        skipped = fenced or fence or not line.strip() or _MACHINE.match(line) or _CODE.match(line)
        goes_on = 0 < len(parts) < _MOST_JOINED and line[:1].islower() and not skipped and not _ENDS.search(parts[-1])
        if parts and not goes_on:
            yield _Paragraph(" ".join(parts), tuple(starts))
            parts, starts = [], []
        if not skipped:
            starts.append((sum(len(part) + 1 for part in parts), number))
            parts.append(_SHAPE.sub("", unicodedata.normalize("NFKC", line.replace("，", ", "))).strip())
    if parts:
        yield _Paragraph(" ".join(parts), tuple(starts))
