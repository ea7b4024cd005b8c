"""The NVIDIA driver is older than the CUDA major version of torch's build can run on.

Where the build is not known, the one that the package index serves stands for it, and the verdict stays open.
"""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import default_runtime, driver_needed, minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import is_vendor_build

_FACTS = ("cuda.runtime", "cuda.driver")
_OFFERED = ("cuda.driver_api",)


def find(environment: Environment, table: Table) -> TraitVerdict:
    runtime, driver = (environment.get(path) for path in _FACTS)
    if runtime is None or driver is None:
        return TraitVerdict(False)
    missing = tuple(path for path, value in zip(_FACTS, (runtime, driver)) if isinstance(value, Unknown))
    if isinstance(driver, Unknown):
        return TraitVerdict(None, missing=missing)
    build = _served(environment, table) if isinstance(runtime, Unknown) else str(runtime)
    floor = driver_needed(environment, build, table) if build else Unknown()
    if isinstance(floor, Unknown) or (floor is None and missing):
        return TraitVerdict(None, missing=missing or (_OFFERED if "image" in environment.facts else _FACTS))
    if floor is None:
        return TraitVerdict(False)
    built = (
        f"torch is built with CUDA {build}" if not missing else f"the package index's torch is built with CUDA {build}"
    )
    summary = f"{built}, which needs driver {floor} or newer; this machine has {driver}"
    pins = {"torch": f"<={older}"} if (older := _older(environment, table)) else {}
    return TraitVerdict(None if missing else True, (Occurrence(summary, ("nvidia-driver", "torch"), pins),), missing)


def _served(environment: Environment, table: Table) -> str | None:
    torch = environment.get("distributions.torch")
    if environment.get("platform.system") == "Windows":  # PyPI has CPU builds for Windows
        return None
    return default_runtime(torch, table) if isinstance(torch, str) and not is_vendor_build(torch) else None


def _older(environment: Environment, table: Table) -> str | None:
    """The newest minor release of torch before this one whose build of the package index runs on the driver."""
    torch = environment.get("distributions.torch")
    if not isinstance(torch, str):
        return None
    found = None
    for release, runtime in table("torch-cuda-builds")["default"].items():
        if release == minor(torch):
            return found
        if driver_needed(environment, runtime, table) is None:
            found = f"{release}.1"
    return None
