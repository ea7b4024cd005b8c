"""A pasted report as facts: every format reads its own lines, prose the rest, and what they agree on counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, cast

from compatcheck.bug_report import _assignments, _code, _issue, _newest, _prose, _settings, _training_phrases
from compatcheck.bug_report._blocks import Block, Line, split
from compatcheck.bug_report._claims import Claim, join_claims, with_doubt
from compatcheck.bug_report._cues import ADVISED, advises, announces, hypothetical
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

    The text may be the JSON that GitHub gives; the lines are those of its text then.
    """
    issue = _issue.read(text)
    blocks = split(issue.text if issue else text)
    claims = [claim for block in blocks for claim in _claims(block)]
    facts = join_claims([*claims, *_settings.claims(blocks), *_code.own_training(blocks)], source)
    filed = issue.facts.facts if issue else {}
    stated = {**filed, **facts.facts}
    report = {**filed.get("report", {}), **facts.section("report")}
    return Environment({**stated, "report": report} if stated else {}, facts.reasons, facts.locations)


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
