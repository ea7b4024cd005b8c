"""How that ended of which a clause speaks: by its own words, else by those of the clauses after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compatcheck.bug_report._cues import Signs

_REACH = 4
_SHORT = 30


class Clause(NamedTuple):
    """A clause, its line, the sentence that it is part of, and what its words tell."""

    text: str
    line: int
    sentence: int
    signs: Signs


class Outcome(NamedTuple):
    works: bool = False
    fails: bool = False
    still: bool = False


def outcome(found: Sequence[Clause], index: int) -> Outcome:
    """How that ended of which the clause at an index speaks.

    ``With X, training starts, but then it hangs``: a clause that waits for its outcome takes what the next ones say, as
    far as these speak of nothing else.
    """
    clause = found[index]
    own = clause.signs
    ended = Outcome(own.works, own.fails, own.still)
    waits = own.opens or own.moves or own.tried or own.before
    for step, other in enumerate(found[index + 1 : index + 1 + _REACH] if own.mentions else (), 1):
        if step == 1 and _lasted(clause, other):
            return Outcome()
        if not _goes_on(clause, other, step == 1, waits, ended.works or ended.fails):
            break
        theirs = other.signs
        turns = theirs.turns or (theirs.stages and not own.moves)
        if turns and ended.works and theirs.fails and not (theirs.works or theirs.slow):
            return Outcome(False, True, theirs.still)
        if own.works or own.fails:
            continue
        if waits:
            ended = _joined(ended, theirs)
        elif step == 1 and theirs.works and not theirs.fails and theirs.thereupon and len(other.text) <= _SHORT:
            ended = ended._replace(works=True)
        elif theirs.fails:
            return Outcome()
    return ended


def _lasted(clause: Clause, other: Clause) -> bool:
    """Whether something worked until what the next clause tells, and so is there still."""
    return clause.sentence == other.sentence and clause.signs.works and other.signs.ends


def _goes_on(clause: Clause, other: Clause, following: bool, waits: bool, ended: bool) -> bool:
    """Whether another clause tells more of the same; where nothing has ended yet, what turns away from it does not."""
    theirs = other.signs
    listed = theirs.bare and following and waits and not ended
    if (theirs.mentions and not listed) or theirs.asked or (theirs.turns and not ended):
        return False
    return clause.sentence == other.sentence or (
        waits and not ended and theirs.thereupon and other.line - clause.line <= 1
    )


def _joined(ended: Outcome, theirs: Signs) -> Outcome:
    fails = theirs.fails or (theirs.trouble and not theirs.works)
    return Outcome(ended.works or theirs.works, ended.fails or fails, ended.still or theirs.still)
