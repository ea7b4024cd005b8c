"""Frozen values for what explains a case; no I/O."""

from __future__ import annotations

from typing import Literal, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.inference.inferred import Inferred, Judged
from compatcheck.results.cases import Case
from compatcheck.results.findings import Finding
from compatcheck.results.logs import Fit, Log, Run

Band = Literal["likely", "plausible", "long shot"]
"""How probable an explanation is, in words."""


class Evidence(NamedTuple):
    """One thing in the input that speaks for an explanation or against it, and where."""

    text: str
    location: Location | None = None


class Ask(NamedTuple):
    """What would tell an explanation from the next: a fact to state, or a probe to run.

    ``fact`` is the path of the fact, empty where ``command`` runs a probe. ``divides`` is how much of the probability
    the answer moves, from 0 to 1.
    """

    text: str
    command: str
    fact: str = ""
    divides: float = 0.0


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
    environment cannot have written the log. ``general`` says what to do where no explanation is plausible.
    ``environment`` is as it was stated, and ``inferred`` what follows from it.
    """

    case: Case
    logs: tuple[Log, ...]
    log: Log | None
    run: Run | None
    explanations: tuple[Explanation, ...]
    mismatch: tuple[Evidence, ...]
    general: tuple[str, ...]
    environment_given: bool
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
