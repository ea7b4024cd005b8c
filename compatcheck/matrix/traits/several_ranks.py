"""Training under ZeRO runs on more than one rank."""

from __future__ import annotations

from compatcheck.environment import Environment
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits._ranks import several_ranks


def find(environment: Environment, table: Table) -> TraitVerdict:
    return several_ranks(environment)
