"""How the facts of a text are mentioned: decided for each clause by its own words and by what follows from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from compatcheck.bug_report._blocks import Line
from compatcheck.bug_report._claims import FAILING, WEAK, WORDS
from compatcheck.bug_report._clauses import clauses, sentences
from compatcheck.bug_report._cues import Signs, signs
from compatcheck.bug_report._outcomes import Clause, Outcome, outcome
from compatcheck.files import limits
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.results.cases import FACTUAL, How

_OPPOSITE: Mapping[How, How] = {"failed": "worked", "worked": "failed"}


class Manner(NamedTuple):
    """How something is mentioned, how much that weighs, and whether it is what something else was changed to."""

    how: How = "stated"
    weight: int = WORDS
    moves: bool = False


class Phrase(NamedTuple):
    """A part of a sentence that mentions all of its facts in one manner."""

    text: str
    line: int
    manner: Manner
    sentence: str

    @property
    def how(self) -> How:
        return self.manner.how


def opposite(how: How) -> How:
    """How that is mentioned which something took the place of."""
    return _OPPOSITE.get(how, "elsewhere" if how == "stated" else how)


def phrases(lines: Iterable[Line], given: Mapping[int, How]) -> Iterator[Phrase]:
    """The phrases of lines of prose; ``given`` is how a line is mentioned whose heading or announcement says so."""
    listed = list(lines)
    found: list[Clause] = []
    texts: list[str] = []
    for line in listed:
        for sentence in sentences(line.plain[: limits.CLAUSE_CHARACTERS]):
            texts.append(sentence)
            found += [
                Clause(text, line.number, len(texts) - 1, signs(text))
                for text, _ in zip(clauses(sentence), range(limits.LINE_CLAUSES))
            ]
    manners = _manners(found)
    rows = [
        (clause, manner._replace(how=given[clause.line]) if _is_overruled(clause, manner, given) else manner)
        for clause, manner in zip(found, manners)
    ]
    for (number, sentence, manner), group in groupby(rows, lambda row: (row[0].line, row[0].sentence, row[1])):
        yield Phrase("".join(clause.text for clause, _ in group).strip(), number, manner, texts[sentence])


def _is_overruled(clause: Clause, manner: Manner, given: Mapping[int, How]) -> bool:
    """What is said of the present or to be the reporter's own stands, whatever the heading is."""
    return clause.line in given and manner[:2] == ("stated", WORDS) and not clause.signs.mine


def _manners(found: Sequence[Clause]) -> list[Manner]:
    manners = [
        _manner(clause.signs, outcome(found, index), _previous(found, index)) for index, clause in enumerate(found)
    ]
    for index in range(1, len(found)):
        before, clause = found[index - 1], found[index]
        listed = clause.sentence == before.sentence and clause.signs.bare and _is_plain(clause.signs)
        if listed and before.signs.mentions:
            manners[index] = manners[index - 1]
    for index in range(len(found) - 2, -1, -1):
        clause, after = found[index], found[index + 1]
        if not (clause.sentence == after.sentence and clause.signs.bare and _is_plain(clause.signs)):
            continue
        heads = after.signs.starts and not after.signs.moves and after.signs.mentions
        if heads and manners[index].how == "stated" and manners[index + 1].how in ("worked", "asked", "elsewhere"):
            manners[index] = manners[index + 1]
    for index, clause in enumerate(found):
        if manners[index].how == "elsewhere" and clause.signs.before:
            manners[index] = _before_the_change(found, manners, index)
    return manners


def _before_the_change(found: Sequence[Clause], manners: Sequence[Manner], index: int) -> Manner:
    """The manner of what was there before a change that the clause beside it speaks of."""
    for beside in (index - 1, index + 1):
        if 0 <= beside < len(found) and found[beside].sentence == found[index].sentence and manners[beside].moves:
            return Manner(opposite(manners[beside].how), FAILING)
    return manners[index]


def _is_plain(one: Signs) -> bool:
    return not (one.works or one.fails or one.moves or one.tried or one.asked or one.advised or one.since or one.now)


def _previous(found: Sequence[Clause], index: int) -> Signs | None:
    """The signs of the clause before in the sentence, to which ``and not with ...`` is the opposite."""
    if index and found[index].signs.flips and found[index - 1].sentence == found[index].sentence:
        before = found[index - 1].signs
        return before if before.fails or before.trouble or before.works else None
    return None


def _manner(own: Signs, ended: Outcome, previous: Signs | None) -> Manner:
    works, fails, still = ended
    if previous:
        return Manner("worked" if previous.fails or previous.trouble else "failed", FAILING)
    if own.asked:
        return Manner("asked", moves=own.moves)
    if own.elsewhere:
        return Manner("elsewhere")
    if own.until and (works or fails):
        return Manner("failed" if works else "advised", WEAK)
    if own.since and (fails or own.trouble or not works) and not own.moves:
        return Manner("failed", WEAK)
    if own.advised and not (fails and not works):
        return Manner("advised", moves=own.moves)
    if own.moves:
        return _moved(own, works, fails, still)
    if works and not fails:
        return Manner("worked")
    if fails or own.trouble:
        weak = (own.still and own.also) or own.tried
        return Manner("failed", WEAK if weak else WORDS if still and not fails else FAILING)
    if own.tried:
        return Manner("failed", WEAK) if still else Manner("tried")
    if own.before:
        return Manner("elsewhere")
    return Manner("stated", FAILING if own.now else WORDS)


def _moved(own: Signs, works: bool, fails: bool, still: bool) -> Manner:
    if works and not fails:
        return Manner("worked", moves=True)
    if fails and not still:
        return Manner("failed", WEAK if own.down and works else FAILING, moves=True)
    if fails or still:
        return Manner("failed", WEAK)
    if own.after and not own.down:
        return Manner("failed", FAILING, moves=True)
    if (own.now or own.up) and not (own.tried or own.down):
        return Manner("stated", FAILING if own.now else WORDS, moves=True)
    return Manner("tried", moves=True)


_CHANGE = LazyPattern(
    r"(?:把|将|从|\b(?:from|chang\w+|switch\w+|replac\w+|mov\w+)\b).{1,80}?(?=改[成为用到]|[切替]?换[成为到]"
    r"|升级?[到至]|降级?[到至]|\s(?:to|with|by|into)\s)",
    re.I | re.A,
    marks=(
        "把",
        "将",
        "从",
        "from",
        "chang",
        "switch",
        "replac",
        "mov",
    ),
)


def sides(phrase: Phrase) -> tuple[Phrase, ...]:
    """What was changed and what it was changed to, of a phrase that speaks of a change, each in its own manner."""
    match = _CHANGE.search(phrase.text) if phrase.manner.moves else None
    if match is None:
        return (phrase,)
    before = phrase.manner._replace(how=opposite(phrase.how))
    return (
        phrase._replace(text=phrase.text[: match.end()], manner=before),
        phrase._replace(text=phrase.text[match.end() :]),
    )


def manner_of(text: str) -> How:
    """How that is mentioned of which a line speaks: its end decides where it says what fails, else its first words."""
    found = [each.how for each in phrases([Line(0, text, text)], {}) if text]
    if not found or found[-1] == "failed":
        return found[-1] if found else "stated"
    return next((how for how in found if how not in FACTUAL), "stated")
