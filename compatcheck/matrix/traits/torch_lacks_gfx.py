"""The project's own build of torch for ROCm holds no code for any AMD GPU of this machine.

A GPU that HSA_OVERRIDE_GFX_VERSION makes say that it is another one is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import backend_of, minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict

_TORCH, _OVERRIDE = "distributions.torch", "HSA_OVERRIDE_GFX_VERSION"


def find(environment: Environment, table: Table) -> TraitVerdict:
    torch, gpus = environment.get(_TORCH), environment.get("gpus")
    if torch is None or not gpus or environment.get("torch_build.hip") is None:
        return TraitVerdict(False)
    if isinstance(environment.get(f"environ.{_OVERRIDE}"), str):
        return TraitVerdict(False)
    targets = () if isinstance(gpus, Unknown) else tuple(gpu.get("gfx") for gpu in gpus)
    if not targets or not all(targets):
        of_others = bool(targets) and all(gpu.get("compute_capability") for gpu in gpus)
        return TraitVerdict(False) if of_others else TraitVerdict(None, missing=("gpu.gfx",))
    listed = table("torch-rocm-architectures")
    compiled = _compiled(torch, listed) if isinstance(torch, str) else None
    if compiled is None:
        return TraitVerdict(None, missing=(_TORCH,))
    if any(target in compiled for target in targets):
        return TraitVerdict(False)
    return TraitVerdict(True, tuple(_lacking(torch, target, compiled, listed) for target in dict.fromkeys(targets)))


def _compiled(torch: str, listed: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The targets of the build that the label names; ``None`` for one that was not looked up."""
    rocm = (backend_of(torch) or "").removeprefix("rocm")
    whole = torch.partition("+")[2] == f"rocm{rocm}"
    rows = (row for row in listed["build"] if whole and row["torch"] == minor(torch) and rocm in row["rocm"])
    row = next(rows, None)
    return tuple(row["architectures"]) if row else None


def _lacking(torch: str, target: str, compiled: tuple[str, ...], listed: Mapping[str, Any]) -> Occurrence:
    summary = f"the GPU is {target}; torch {torch} has code for {', '.join(compiled)}"
    kin = listed["kin"].get(target)
    if not kin or kin["target"] not in compiled:
        return Occurrence(summary, ("torch",))
    why = f"runs the code built for {kin['target']}; set the variable before torch is imported"
    return Occurrence(summary, ("torch",), remedies=({"environ": {_OVERRIDE: kin["override"]}, "why": why},))
