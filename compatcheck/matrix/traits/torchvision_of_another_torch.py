"""torchvision is built for another minor release of torch than the one installed."""

from __future__ import annotations

from compatcheck.matrix._match import TraitVerdict
from compatcheck.matrix._traits import Table
from compatcheck.matrix.traits._torch_companion import find_mismatch
from compatcheck.model import Environment


def find(environment: Environment, table: Table) -> TraitVerdict:
    return find_mismatch("torchvision", environment, table("torch-companions"))
