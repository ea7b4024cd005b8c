"""One process can reach more than one GPU, so that a model may be spread over them."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict

_VISIBLE = "environ.CUDA_VISIBLE_DEVICES"


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Open where GPUs are named and not counted, or where nobody knows whether some are hidden."""
    visible, gpus = environment.get(_VISIBLE), environment.get("gpus")
    if isinstance(visible, str):
        return TraitVerdict("," in visible.strip(", "))
    if isinstance(gpus, Unknown):
        return TraitVerdict(None, missing=("gpus",))
    if gpus and gpus[0].get("uncounted"):
        return TraitVerdict(None, missing=("gpus",), suspected=True)
    if len(gpus or ()) < 2:
        return TraitVerdict(False)
    return TraitVerdict(True) if visible is None else TraitVerdict(None, missing=(_VISIBLE,), suspected=True)
