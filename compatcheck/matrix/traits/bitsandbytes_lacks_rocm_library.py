"""The bitsandbytes release carries no library for torch's ROCm, or one without code for the GPU.

The wheels before the first with such libraries have none; what is there may be built from source then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import parse_version

_FACTS = ("distributions.bitsandbytes", "torch_build.hip")


def find(environment: Environment, table: Table) -> TraitVerdict:
    installed, hip = (environment.get(path) for path in _FACTS)
    if installed is None or hip is None:
        return TraitVerdict(False)
    missing = tuple(path for path, value in zip(_FACTS, (installed, hip)) if isinstance(value, Unknown))
    if missing:
        return TraitVerdict(None, missing=missing)
    listed, version = table("bitsandbytes-rocm"), parse_version(installed)
    if version is None or version.is_devrelease or "+" in installed:
        return TraitVerdict(None, missing=_FACTS[:1])
    pins = {"bitsandbytes": f">={listed['releases'][-1]['from']}"}
    row = next((row for row in reversed(listed["releases"]) if version >= Version(row["from"])), None)
    if row is None:
        summary = f"the wheel of bitsandbytes {installed} ships no library for ROCm"
        return TraitVerdict(None, (Occurrence(summary, ("bitsandbytes",), pins),), _FACTS[:1])
    carried = ", ".join(row["libraries"])
    loaded = _loaded(row, minor(hip))
    if loaded is None:
        summary = f"bitsandbytes {installed} ships libraries for ROCm {carried}; torch is built with ROCm {minor(hip)}"
        return TraitVerdict(True, (Occurrence(summary, ("bitsandbytes", "torch"), pins),))
    targets = [gpu.get("gfx") for gpu in environment.facts.get("gpus") or ()]
    if not targets or not all(targets):
        return TraitVerdict(None, missing=("gpu.gfx",))
    if any(target in loaded for target in targets):
        return TraitVerdict(False)
    summary = f"the library of bitsandbytes {installed} for ROCm {minor(hip)} has no code for {targets[0]}"
    return TraitVerdict(True, (Occurrence(summary, ("bitsandbytes",)),))


def _loaded(row: Mapping[str, Any], rocm: str) -> list[str] | None:
    """The targets of the library that it loads, ``None`` where it finds none."""
    libraries: Mapping[str, list[str]] = row["libraries"]
    if rocm in libraries or not row["nearest"]:
        return libraries.get(rocm)
    near = [targets for version, targets in libraries.items() if version.split(".")[0] == rocm.split(".")[0]]
    return sorted({target for targets in near for target in targets}) or None
