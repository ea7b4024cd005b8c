"""What pip says while it installs, and what packages say of one another's versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.packages.names import normalised

TITLE = "the messages of pip"
_INSTALLED = "Successfully installed "
_EXISTING = LazyPattern(
    r"\s*(?:Found existing installation|Attempting uninstall): ([\w.-]{1,60}) (\d[\w.+!]{0,60})\s*\Z",
    marks=(
        "found existing installation",
        "attempting uninstall",
    ),
)
_SATISFIED = LazyPattern(
    r"\s*Requirement already satisfied: ([A-Za-z0-9._-]{1,60})\S* in \S.{0,200}?\((\d[\w.+!]{0,60})\)\s*\Z",
    marks=("requirement already satisfied: ",),
)
_REQUIRES = LazyPattern(
    r"(?:ERROR: )?([\w.-]{1,60}) (\d\S{0,60}) requires \S.{0,120}, but you have ([\w.-]{1,60}) (\d[\w.+!]{0,60}) which",
    marks=(", but you have ",),
)
_REMOVED = LazyPattern(
    r"\s*(?:Uninstalling|Successfully uninstalled) \S+",
    marks=(
        "uninstalling",
        "successfully uninstalled",
    ),
)
_FOUND = LazyPattern(r"but found ([A-Za-z][\w.-]{0,60})==(\d[\w.+!]{0,60}?)\.?(?:\s|\Z)", marks=("but found ",))


def recognises(block: Block) -> tuple[Line, ...]:
    long = (line for line in block.lines if _INSTALLED in line.text)
    starts, parts = (_EXISTING, _SATISFIED, _REMOVED), (_REQUIRES, _FOUND)
    short = (
        line
        for line in block.short()
        if any(form.match(line.text) for form in starts)
        or (("requires " in line.text or "but found" in line.text) and any(form.search(line.text) for form in parts))
    )
    return tuple(sorted({*long, *short}))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    before: list[Claim] = []
    installed: set[str] = set()
    for line in lines:
        if _INSTALLED in line.text:
            for claim in _installed(line):
                installed.add(claim.path)
                yield claim
            continue
        existing, satisfied = _EXISTING.match(line.text), _SATISFIED.match(line.text)
        needs, found = _REQUIRES.search(line.text), _FOUND.search(line.text)
        if existing:
            before.append(distribution_claim(existing[1], existing[2], line.number))
        elif satisfied:
            yield distribution_claim(satisfied[1], satisfied[2], line.number)
        elif needs:
            yield distribution_claim(needs[1], needs[2], line.number)
            yield distribution_claim(needs[3], needs[4], line.number)
        elif found:
            yield distribution_claim(found[1], found[2], line.number)
    yield from (claim for claim in before if claim.path not in installed)


def _installed(line: Line) -> Iterator[Claim]:
    for word in line.text.partition(_INSTALLED)[2].split():
        name, dash, version = word.rpartition("-")
        if dash and version[:1].isdigit() and normalised(name):
            yield distribution_claim(name, version, line.number)
