"""The process sees exactly one GPU, which is not the same as training on one rank."""

from __future__ import annotations

import re

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import TraitVerdict

_VISIBLE = "environ.CUDA_VISIBLE_DEVICES"


def find(environment: Environment, table: Table) -> TraitVerdict:
    visible, gpus = environment.get(_VISIBLE), environment.get("gpus")
    if isinstance(visible, str):
        return TraitVerdict(re.fullmatch(r"[^,\s]+", visible) is not None and visible != "-1")
    ranks = environment.get("training.world_size")
    alone = ranks == 1
    if isinstance(gpus, Unknown) or (gpus and gpus[0].get("uncounted")):
        return TraitVerdict(None, missing=("gpus",), suspected=alone or isinstance(ranks, Unknown))
    if len(gpus or ()) < 2:
        return TraitVerdict(bool(gpus), presumed=True)
    hidden = isinstance(visible, Unknown) and alone
    return TraitVerdict(None, missing=(_VISIBLE,)) if hidden else TraitVerdict(False)
