"""A pasted report as facts: every format reads its own lines, prose the rest, and what they agree on counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, cast

from compatcheck.bug_report import _assignments, _code, _issue, _newest, _prose, _settings, _training_phrases
from compatcheck.bug_report._blocks import Block, Line, split
from compatcheck.bug_report._claims import Claim, join_claims, with_doubt
from compatcheck.bug_report._cues import ADVISED, advises, announces, hypothetical
from compatcheck.bug_report._input import plain_text
from compatcheck.environment import Environment
from compatcheck.files.units import units

_SMALL = 8
_NEAR = 2
Read = Callable[[Sequence[Line]], Iterator[Claim]]


class Format(Protocol):
    def recognises(self, block: Block) -> tuple[Line, ...]: ...

    def read(self, lines: Sequence[Line]) -> Iterator[Claim]: ...


def formats() -> tuple[Format, ...]:
    """The units of the folder, in the order of their names."""
    return tuple(cast(Format, unit) for unit in units("compatcheck.bug_report.formats").values())


def read_report(text: str, source: str) -> Environment:
    """The environment that a report states; each fact keeps its line, and what lines contradict is unknown.

    The text may be the JSON that GitHub gives; the lines are those of its text then. Of several reports in it only what
    all of them state is known.
    """
    issues = _issue.read(text)
    read = [_read_one(issue.text, source, issue.facts) for issue in issues] or [_read_one(text, source)]
    return read[0] if len(read) == 1 else _common(read)


def _read_one(text: str, source: str, filed: Environment | None = None) -> Environment:
    blocks = split(plain_text(text))
    claims = [claim for block in blocks for claim in _claims(block)]
    facts = join_claims([*claims, *_settings.claims(blocks), *_code.own_training(blocks)], source)
    known = filed.facts if filed else {}
    stated = {**known, **facts.facts}
    report = {**known.get("report", {}), **facts.section("report")}
    return Environment({**stated, "report": report} if stated else {}, facts.reasons, facts.locations)


def _common(read: Sequence[Environment]) -> Environment:
    """What several reports state alike; the rest belongs to one of them, and nobody says to which."""
    first, why = read[0], f"it is not the same in all {len(read)} reports of the input"
    facts = {path: value for path, value in first.flat().items() if not isinstance(value, Mapping) or not value}
    same = {path: value for path, value in facts.items() if all(each.get(path) == value for each in read)}
    paths = {path for each in read for path in (*each.flat(), *each.reasons)} - same.keys()
    sections = {path.rpartition(".")[0] for path in same}
    reasons = {path: why for path in paths if path not in sections and not _is_section(path, read)}
    return Environment.from_flat(same, reasons, {path: at for path, at in first.locations.items() if path in same})


def _is_section(path: str, read: Sequence[Environment]) -> bool:
    return any(isinstance(each.get(path), Mapping) for each in read)


def _claims(block: Block) -> Iterator[Claim]:
    taken: set[int] = set()
    for unit in formats():
        lines = unit.recognises(block)
        taken.update(line.number for line in lines)
        claims = unit.read(lines)
        yield from with_doubt(claims, ADVISED) if getattr(unit, "TYPED", False) and _is_advice(block, lines) else claims
    yield from _assignments.read(block, block.short())
    rest = [line for line in block.lines if line.number not in taken]
    yield from _prose.read(block, rest)
    yield from _training_phrases.read(block, rest)
    yield from _newest.read(block.lines)
    yield from _code.read(block)


def _is_advice(block: Block, lines: Sequence[Line]) -> bool:
    """Whether the words around some few lines say that they are no record of the environment."""
    small = len(lines) <= _SMALL
    if block.fenced:
        return small and advises(block.lead, block.tail, small)
    before = [line.plain for line in block.lines if lines and 0 < lines[0].number - line.number <= _NEAR][-1:]
    return small and any(hypothetical(text) and announces(text) for text in before)
