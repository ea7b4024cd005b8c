"""A pasted report as facts: every format reads its own lines, prose the rest, and what they agree on counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

from compatcheck.bug_report import _assignments, _code, _issue, _models, _newest, _prose, _settings, _training_phrases
from compatcheck.bug_report._blocks import Block, Line, split
from compatcheck.bug_report._claims import RECORD, WEAK, Claim, join_claims, said, without_bystanders
from compatcheck.bug_report._contrasts import contrasts
from compatcheck.bug_report._days import doubt_later_releases
from compatcheck.bug_report._implied import framework_claims
from compatcheck.bug_report._input import plain_text
from compatcheck.bug_report._mentions import Phrase, phrases, sides
from compatcheck.bug_report._names import spoken_in
from compatcheck.bug_report._repeats import without_repeats
from compatcheck.bug_report._reports import reports_in
from compatcheck.bug_report._surroundings import announced_manners, fence_manner, headed_manners, lead_manner
from compatcheck.environment import Environment
from compatcheck.files.units import units
from compatcheck.results.cases import Account, How

Read = Callable[[Sequence[Line]], Iterator[Claim]]
Hows = Mapping[int, How]


class Format(Protocol):
    TITLE: str

    def recognises(self, block: Block) -> tuple[Line, ...]: ...

    def read(self, lines: Sequence[Line]) -> Iterator[Claim]: ...


def formats() -> tuple[Format, ...]:
    """The units of the folder, in the order of their names."""
    return tuple(cast(Format, unit) for unit in units("compatcheck.bug_report.formats").values())


def read_account(text: str, source: str) -> Account:
    """What a report states, each mention with its line; what its lines contradict is unknown, with the reason.

    The text may be the JSON that GitHub gives; the lines are those of its text then. Of several reports in a text only
    what all of them state is known.
    """
    issues = _issue.read(text)
    read = [_read_one(issue.text, source, issue.facts) for issue in issues]
    read = read or [_read_one(part, source) for part in reports_in(text)]
    if len(read) == 1:
        return read[0]
    mentions = tuple(each for account in read for each in account.said)
    found = tuple(each for account in read for each in account.contrasts)
    return Account(_common([account.environment for account in read]), mentions, found)


def _read_one(text: str, source: str, filed: Environment | None = None) -> Account:
    blocks = split(without_repeats(plain_text(text)))
    headed = headed_manners(blocks)
    spoken = spoken_in("\n".join(line.plain for block in blocks for line in block.lines))
    claims = [claim for block in blocks for claim in _claims(block, headed, spoken)]
    claims += _mentioned((*_settings.claims(blocks), *_code.own_training(blocks)), headed)
    known = filed.facts if filed else {}
    claims = without_bystanders([*doubt_later_releases(claims, known.get("report", {}).get("date"))])
    claims += framework_claims(claims)
    joined, variants = join_claims(claims, source)
    stated = {**known, **joined.facts}
    report = {**known.get("report", {}), **joined.section("report")}
    environment = Environment({**stated, "report": report} if stated else {}, joined.reasons, joined.locations)
    return Account(environment, said(claims, source), contrasts(claims, joined, source), variants)


def _common(read: Sequence[Environment]) -> Environment:
    """What several reports state alike; the rest belongs to one of them, and nobody says to which."""
    first, why = read[0], f"the value differs between the {len(read)} reports of the input"
    facts = {path: value for path, value in first.flat().items() if not isinstance(value, Mapping) or not value}
    same = {path: value for path, value in facts.items() if all(each.get(path) == value for each in read)}
    paths = {path for each in read for path in (*each.flat(), *each.reasons)} - same.keys()
    sections = {path.rpartition(".")[0] for path in same}
    reasons = {path: why for path in paths if path not in sections and not _is_section(path, read)}
    reasons |= {path: said for path, said in first.reasons.items() if path in reasons and _none_states(path, read)}
    return Environment.from_flat(same, reasons, {path: at for path, at in first.locations.items() if path in same})


def _none_states(path: str, read: Sequence[Environment]) -> bool:
    return not any(each.states(path) for each in read)


def _is_section(path: str, read: Sequence[Environment]) -> bool:
    return any(isinstance(each.get(path), Mapping) for each in read)


def _claims(block: Block, headed: Hows, spoken: str) -> Iterator[Claim]:
    around = _around(block, headed)
    taken: set[int] = set()
    for unit in formats():
        lines = unit.recognises(block)
        if not getattr(unit, "WITHIN_PROSE", False):
            taken.update(line.number for line in lines)
        typed = getattr(unit, "TYPED", False)
        hows = {**lead_manner(block, lines), **around} if typed and lines else headed
        yield from _mentioned(unit.read(lines), hows)
    yield from _prose.installed(block, (line for line in block.lines if line.number not in taken), around)
    found = list(phrases(_prose.spoken(block.lines, block.fenced), around))
    prose = [phrase for phrase in found if phrase.line not in taken]
    yield from _newest.read(found)
    if block.fenced:
        yield from _mentioned((*_assignments.read(block, block.short()), *_code.read(block)), around)
        yield from (claim._replace(weight=max(claim.weight, RECORD)) for claim in _prose.read(prose, spoken))
        return
    yield from _prose.read(prose, spoken)
    yield from _training_phrases.read(prose)
    yield from _models.read(prose)
    yield from _code_between(block, found)


def _around(block: Block, headed: Hows) -> Hows:
    """How each line is mentioned that a heading, an announcement or the words around its fence speak of."""
    if not block.fenced:
        return {**announced_manners(block), **headed}
    how = fence_manner(block)
    return {**({line.number: how for line in block.lines} if how else {}), **headed}


def _mentioned(claims: Iterable[Claim], hows: Hows) -> Iterator[Claim]:
    return (claim._replace(how=hows.get(claim.line, claim.how)) for claim in claims)


def _code_between(block: Block, found: Sequence[Phrase]) -> Iterator[Claim]:
    """The claims of code and settings in lines of prose, which a line mentions in one manner or phrase by phrase."""
    sided: dict[int, list[Phrase]] = {}
    for phrase in found:
        sided.setdefault(phrase.line, []).extend(sides(phrase))
    manners: dict[tuple[How, bool], list[Line]] = {}
    for line in block.lines:
        own = [(_key(each), Line(line.number, each.text, each.text)) for each in sided.get(line.number, ())]
        if len({key for key, _ in own}) < 2:
            own = [(own[0][0] if own else ("stated", False), line)]
        for key, piece in own:
            manners.setdefault(key, []).append(piece)
    for (how, weak), lines in manners.items():
        part = block._replace(lines=tuple(lines))
        for claim in (*_assignments.read(part, part.short()), *_code.read(part)):
            yield claim._replace(how=how, weight=WEAK if weak else claim.weight)


def _key(phrase: Phrase) -> tuple[How, bool]:
    return phrase.how, phrase.manner.weight == WEAK
