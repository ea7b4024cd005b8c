"""The model's own code, or the user's script, calls or reads what the stated release lacks and others have."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits._asks import SCRIPT, Told, verdict
from compatcheck.project.trait_names import keywords_of

_KINDS = frozenset(("attribute", "member", "keyword", "positional", "missing", "twice", "moved"))


def find(environment: Environment, table: Table) -> TraitVerdict:
    """As `verdict`; a keyword that a rule over scripts is about is left to it."""
    stated = environment.get("trainer.traits")
    ruled = keywords_of(() if isinstance(stated, Unknown) else stated or ())

    def has_rule(path: str, told: Told) -> bool:
        called = told.refusal.target.rpartition(".")[2]
        return path == SCRIPT and (called, told.refusal.name) in ruled

    return verdict(environment, table, _KINDS, has_rule)
