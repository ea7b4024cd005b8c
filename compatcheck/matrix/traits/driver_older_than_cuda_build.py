"""The driver came before the CUDA minor version that torch is built with, so that it compiles none of its PTX.

Machine code runs all the same, and so does PTX where an image carries a newer library of the driver's. Whether each
kernel that a run needs is there as machine code is told by no file, only by who knows the wheel and states it:
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import carried_forward, minor, numbers
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict

_FACTS = ("cuda.runtime", "cuda.driver")


def find(environment: Environment, table: Table) -> TraitVerdict:
    runtime, driver = (environment.get(path) for path in _FACTS)
    if runtime is None or driver is None or environment.get("platform.system") in ("Windows", "Darwin"):
        return TraitVerdict(False)
    missing = tuple(path for path, value in zip(_FACTS, (runtime, driver)) if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    first = numbers(table("cuda-driver")["shipped"].get(minor(runtime), ""))
    installed, level = numbers(driver), environment.get("cuda.driver_api")
    offered = numbers(level) if isinstance(level, str) else None
    if first is None or installed is None:
        return TraitVerdict(None, missing=_FACTS)
    newer = offered is not None and offered >= (numbers(minor(runtime)) or ())
    if installed >= first or newer or (carried := carried_forward(environment, table)):
        return TraitVerdict(False)
    if carried is None:
        return TraitVerdict(None, missing=("cuda.driver_api",))
    summary = (
        f"driver {driver} is older than CUDA {runtime}, the CUDA of this torch and its "
        "extensions: code that they ship only as PTX does not run"
    )
    seen = (Occurrence(summary, ("nvidia-driver", "vllm", "torch")),)
    compiled = environment.get("cuda.machine_code")
    if isinstance(compiled, Unknown):
        return TraitVerdict(None, seen, ("cuda.machine_code",))
    return TraitVerdict(not compiled, () if compiled else seen)
