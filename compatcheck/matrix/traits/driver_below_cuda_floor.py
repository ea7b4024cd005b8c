"""The NVIDIA driver is older than the CUDA major version of torch's build can run on."""

from __future__ import annotations

from compatcheck.matrix._match import Occurrence, TraitVerdict
from compatcheck.matrix._order import parse_version
from compatcheck.matrix._traits import Table
from compatcheck.model import Environment, Unknown, lookup

_FACTS = ("cuda.runtime", "cuda.driver")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """A driver API level of the runtime's major or above acquits: a forward-compatibility package may provide it."""
    runtime, driver = (lookup(environment, path) for path in _FACTS)
    if runtime is None or driver is None:
        return TraitVerdict(False)
    missing = tuple(path for path, value in zip(_FACTS, (runtime, driver)) if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    if lookup(environment, "platform.system") in ("Windows", "Darwin"):
        return TraitVerdict(False)
    major = runtime.split(".")[0]
    floor = table("cuda-driver")["floor"].get(major)
    installed, needed = parse_version(driver), parse_version(floor or "")
    if installed is None or needed is None:
        return TraitVerdict(None, missing=_FACTS)
    if installed >= needed or _offers(environment, major):
        return TraitVerdict(False)
    summary = f"torch is built with CUDA {runtime}, which needs driver {floor} or newer; this machine has {driver}"
    return TraitVerdict(True, (Occurrence(summary, ("nvidia-driver", "torch")),))


def _offers(environment: Environment, major: str) -> bool:
    level = lookup(environment, "cuda.driver_api")
    return isinstance(level, str) and level.split(".")[0].isdigit() and int(level.split(".")[0]) >= int(major)
