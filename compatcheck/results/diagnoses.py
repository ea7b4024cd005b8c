"""Frozen values for what explains a case; no I/O."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.inference.inferred import Inferred, Judged
from compatcheck.results.cases import Case
from compatcheck.results.findings import Finding
from compatcheck.results.logs import Fit, Log, Run

WORTH_ASKING = 0.02
"""The probability that an answer has to move to be worth asking for."""

Band = Literal["likely", "plausible", "long shot"]
"""How probable an explanation is, in words."""


class Evidence(NamedTuple):
    """One thing in the input that speaks for an explanation or against it, and where.

    ``fact`` tells facts that meet the conditions of an entry from lines, symptoms and contrasts. ``common``: many
    cases have it whatever their fault, such as the class of an exception or the version of one package.
    """

    text: str
    location: Location | None = None
    fact: bool = False
    common: bool = False


class Ask(NamedTuple):
    """What would tell an explanation from the next: a fact to state, or a probe to run.

    ``fact`` is the path of the fact, empty where ``command`` runs a probe, and ``condition`` what an entry needs of it.
    ``divides`` is how much of the probability the answer is expected to move, from 0 to 1.
    """

    text: str
    command: str
    fact: str = ""
    divides: float = 0.0
    condition: Any = None


class Answer(NamedTuple):
    """What a person answers to a question: whether a fact meets a condition; None is "don't know"."""

    fact: str
    condition: Any
    holds: bool | None


class Explanation(NamedTuple):
    """An entry that would explain the case, with its probability.

    ``fit`` says how its conditions stand to the known facts; None where one of them fails. ``misleading`` is advice
    that is known not to help.
    """

    finding: Finding
    probability: float
    band: Band
    fit: Fit | None
    speaks_for: tuple[Evidence, ...]
    against: tuple[Evidence, ...] = ()
    asks: tuple[Ask, ...] = ()
    misleading: tuple[str, ...] = ()


class Diagnosis(NamedTuple):
    """What was given, what it shows, and what explains it, the most probable first.

    ``log`` is the one that is judged and ``run`` its run, where there is one. ``mismatch`` says why the named
    environment cannot have written the log. ``general`` says what to do where no explanation is plausible. ``inputs``
    are the paths that were given, ``environment`` is as it was stated, and ``inferred`` what follows from it.
    """

    case: Case
    logs: tuple[Log, ...]
    log: Log | None
    run: Run | None
    explanations: tuple[Explanation, ...]
    mismatch: tuple[Evidence, ...]
    general: tuple[str, ...]
    inputs: tuple[str, ...]
    inferred: Inferred
    matrix_revision: str
    matrix_entries: int
    matrix_date: str
    matrix_stale: bool

    @property
    def environment(self) -> Environment:
        return self.case.environment

    @property
    def judged(self) -> Judged:
        """The environment with what follows from it."""
        return self.inferred.judged(self.environment)

    def best_question(self, skip: Collection[str] = ()) -> Ask | None:
        """The fact that divides the probability best; None where none moves a noteworthy part of it."""
        asks = (ask for each in self.explanations for ask in each.asks)
        worth = (ask for ask in asks if ask.fact and ask.fact not in skip and ask.divides >= WORTH_ASKING)
        return max(worth, key=lambda ask: ask.divides, default=None)

    @property
    def healthy(self) -> bool:
        """Whether a run was seen, and nothing of a fault."""
        run = self.run
        return run is not None and run.signature.benign and run.crash is None and not self.case.sightings

    @property
    def shows_fault(self) -> bool:
        """Whether anything given shows a fault or an explanation is at least plausible."""
        return bool(
            self.case.sightings or self.case.hits or any(each.band != "long shot" for each in self.explanations)
        )
