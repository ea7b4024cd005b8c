"""vllm has no local label or that of CUDA 12, like the wheels of the package index before 0.20."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict

_VLLM = "distributions.vllm"


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Holds for any release; vllm compiled locally with CUDA 13 has a label such as ``cu130``."""
    version = environment.get(_VLLM)
    if version is None:
        return TraitVerdict(False)
    if isinstance(version, Unknown):
        return TraitVerdict(None, missing=(_VLLM,))
    label = version.partition("+")[2]
    return TraitVerdict(not label or "cu12" in label)
