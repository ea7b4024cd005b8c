"""Training under ZeRO runs on more than one rank."""

from __future__ import annotations

from compatcheck.matrix._match import TraitVerdict
from compatcheck.matrix._traits import Table
from compatcheck.matrix.traits._ranks import several_ranks
from compatcheck.model import Environment


def find(environment: Environment, table: Table) -> TraitVerdict:
    return several_ranks(environment)
