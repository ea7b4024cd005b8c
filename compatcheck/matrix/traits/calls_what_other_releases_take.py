"""The model's own code, or the user's script, calls or reads what the stated release lacks and others have."""

from __future__ import annotations

from collections.abc import Sequence

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits._asks import SCRIPT, Told, verdict
from compatcheck.matrix.traits._reached_links import ReachedLink, reached_links
from compatcheck.project.trait_names import keywords_of

_KINDS = frozenset(("attribute", "member", "keyword", "positional", "missing", "twice", "moved"))


def find(environment: Environment, table: Table) -> TraitVerdict:
    """As `verdict`; a keyword that a rule over scripts is about is left to it."""
    stated = environment.get("trainer.traits")
    ruled = keywords_of(() if isinstance(stated, Unknown) else stated or ())

    def has_rule(path: str, told: Told) -> bool:
        called = told.refusal.target.rpartition(".")[2]
        return path == SCRIPT and (called, told.refusal.name) in ruled

    read = verdict(environment, table, _KINDS, has_rule)
    noted = list(reached_links(environment, table, of_packages=False))
    return _joined(read, noted) if noted else read


def _joined(read: TraitVerdict, noted: Sequence[ReachedLink]) -> TraitVerdict:
    """What was read in the code, and what is noted of code that was not; what is certain before what is open."""
    sure = [each for each in noted if each.is_certain]
    if sure or read.holds:
        told = (*(read.occurrences if read.holds else ()), *(each.occurrence for each in sure))
        return TraitVerdict(True, told, facts=(*read.facts, *(path for each in sure for path in each.facts)))
    missing = (*(read.missing if read.occurrences else ()), *(path for each in noted for path in each.missing))
    return TraitVerdict(None, (*read.occurrences, *(each.occurrence for each in noted)), missing)
