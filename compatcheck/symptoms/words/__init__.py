"""Symptoms in the words of a person, English or Chinese.

A clause at a time: words that mean the same become one token, the phrases of the table are looked for, and what is
negated, cured, guessed, asked about or of somebody else is no sighting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.environment import Location
from compatcheck.files import limits
from compatcheck.results.cases import Sighting
from compatcheck.symptoms.words._clauses import Clause, clauses
from compatcheck.symptoms.words._phrases import changes, phrases, pleas, polarity, tokenised

_SUBJECT = re.compile(r"\b(?:LOSS|VALIDATION|GRADNORM|GRADIENT|REWARD|OUTPUT|MEMORY|ADAPTER|WEIGHTS)\b")
_CONDITION = re.compile(
    r"\s*(?:when|whenever|once|if|after|as soon as|only|while|with|on|in|during|under)\b|当|只要|一旦|在", re.A
)
_LONGEST_TEXT = 160


def read(text: str, source: str) -> tuple[Sighting, ...]:
    """The symptoms in the order of the text, each once for each thing that it came with."""
    every = list(clauses(text[: limits.PROSE_CHARACTERS]))
    found: dict[tuple[str, str], Sighting] = {}
    subjects: list[str] = []
    sentence = 0
    for at, clause in enumerate(every):
        if clause.sentence != sentence:
            subjects, sentence = [], clause.sentence
        tokens = tokenised(pleas().sub(" ", clause.text))
        own = _SUBJECT.findall(tokens)
        shown = list(_symptoms(tokens))
        if subjects and not own:
            carried = dict.fromkeys((subjects[-1], subjects[0]))
            shown += [name for head in carried for name in _symptoms(f"{head} {tokens}", carried=True)]
        subjects += own
        if not shown:
            continue
        change = _change(every, at)
        for symptom in dict.fromkeys(shown):
            place = Location(source, clause.line)
            sighting = Sighting(symptom, clause.written[:_LONGEST_TEXT], place, "words", change)
            found.setdefault((symptom, change), sighting)
    return tuple(found.values())


def _symptoms(tokens: str, carried: bool = False) -> Iterator[str]:
    """What a clause says is there; with its subject ``carried`` from one before it, if such a phrase allows that."""
    against = polarity()
    if against.clause.search(tokens):
        return
    for phrase in phrases():
        match = None if carried and not phrase.reach else phrase.search(tokens)
        if match is None or carried and match.end() > phrase.reach:
            continue
        gone = against.before.search(tokens[: match.start()]) or against.after.search(tokens[match.end() :])
        if not gone:
            yield phrase.symptom


def _change(every: Sequence[Clause], at: int) -> str:
    """What the symptom of a clause came with: said in it, in the clauses before it, or in a condition behind it."""
    clause = every[at]
    own = _change_in(clause.text)
    if own:
        return own
    for before in reversed(every[max(0, at - 2) : at]):
        if before.sentence == clause.sentence and (name := _change_in(before.text)):
            return name
    behind = every[at + 1] if at + 1 < len(every) else clause
    if behind.sentence == clause.sentence and _CONDITION.match(behind.text):
        return _change_in(behind.text)
    return ""


def _change_in(text: str) -> str:
    return next((name for name, regex in changes() if regex.search(text)), "")
