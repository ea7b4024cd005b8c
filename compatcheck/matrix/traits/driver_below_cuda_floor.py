"""The NVIDIA driver is older than the CUDA major version of torch's build can run on."""

from __future__ import annotations

from compatcheck._torch_build import driver_needed
from compatcheck.matrix._match import Occurrence, TraitVerdict
from compatcheck.matrix._traits import Table
from compatcheck.model import Environment, Unknown, lookup

_FACTS = ("cuda.runtime", "cuda.driver")


def find(environment: Environment, table: Table) -> TraitVerdict:
    runtime, driver = (lookup(environment, path) for path in _FACTS)
    if runtime is None or driver is None:
        return TraitVerdict(False)
    missing = tuple(path for path, value in zip(_FACTS, (runtime, driver)) if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    floor = driver_needed(environment, runtime, table)
    if floor is None:
        return TraitVerdict(False)
    if isinstance(floor, Unknown):
        return TraitVerdict(None, missing=_FACTS)
    summary = f"torch is built with CUDA {runtime}, which needs driver {floor} or newer; this machine has {driver}"
    return TraitVerdict(True, (Occurrence(summary, ("nvidia-driver", "torch")),))
