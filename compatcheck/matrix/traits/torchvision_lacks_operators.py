"""torchvision is built for another minor release of torch, and can be imported beside it less its operators."""

from __future__ import annotations

from compatcheck.environment import Environment
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.matrix.traits._torch_companion import find_mismatch, imports_beside_another


def find(environment: Environment, table: Table) -> TraitVerdict:
    releases = table("torch-companions")
    if imports_beside_another("torchvision", environment, releases) is False:
        return TraitVerdict(False)
    return find_mismatch("torchvision", environment, releases)
