"""torchaudio is built for another minor release of torch than the one installed."""

from __future__ import annotations

from compatcheck.environment import Environment
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits._torch_companion import find_mismatch


def find(environment: Environment, table: Table) -> TraitVerdict:
    return find_mismatch("torchaudio", environment, table("torch-companions"))
