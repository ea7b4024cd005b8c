"""The model's own code, or the user's script, imports a name that the stated release lacks and others have."""

from __future__ import annotations

from compatcheck.environment import Environment
from compatcheck.interfaces.history import NEEDS
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits._asks import MODEL, Told, verdict
from compatcheck.packages.versions import parse_range

_KINDS = frozenset(("import", NEEDS))


def find(environment: Environment, table: Table) -> TraitVerdict:
    """As `verdict`; a dropped name that the model's code imports is left to an entry of its own where it has one."""
    own = {name for names in table("imported-names")["traits"].values() for name in names}

    def has_entry(path: str, told: Told) -> bool:
        return path == MODEL and f"{told.ask.target}.{told.ask.name}" in own and _was_there(told)

    return verdict(environment, table, _KINDS, has_entry)


def _was_there(told: Told) -> bool:
    """Whether a release before the stated one has the name."""
    return any(bound.version <= told.release for run in told.refusal.accepts for bound in parse_range(run))
