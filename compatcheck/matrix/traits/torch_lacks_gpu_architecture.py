"""The torch build holds no code that any GPU of this machine can run; a spare card beside one that runs is no fault."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compatcheck._torch_build import Build, compiled_build, left_behind, listed_build, runs_on
from compatcheck.matrix._match import Occurrence, TraitVerdict
from compatcheck.matrix._traits import Table
from compatcheck.model import Environment, Unknown, lookup


def find(environment: Environment, table: Table) -> TraitVerdict:
    runtime, gpus = lookup(environment, "cuda.runtime"), lookup(environment, "gpus")
    if runtime is None or not gpus:
        return TraitVerdict(False)
    if isinstance(runtime, Unknown) or isinstance(gpus, Unknown):
        unknown = {"cuda.runtime": runtime, "gpu.compute_capability": gpus}
        return TraitVerdict(None, missing=tuple(p for p, value in unknown.items() if isinstance(value, Unknown)))
    build = _build(environment, runtime, table)
    if build is None:
        oldest = left_behind(runtime, gpus, table)
        if oldest is None:
            return TraitVerdict(None, missing=("torch_build.architectures",))
        nothing = f"is built with CUDA {runtime}, which compiles for nothing older than {oldest}"
        return TraitVerdict(True, tuple(_occurrence(environment, nothing, gpu) for gpu in _distinct(gpus)))
    runs = runs_on(build, gpus)
    if runs is None:
        return TraitVerdict(None, missing=("gpu.compute_capability",))
    if runs:
        return TraitVerdict(False)
    compiled = "is compiled for " + ", ".join(f"{major}.{low}" for major, low in build.machine_code)
    compiled += " and carries no PTX that would do" if build.ptx else ""
    return TraitVerdict(True, tuple(_occurrence(environment, compiled, gpu) for gpu in _distinct(gpus)))


def _distinct(gpus: Iterable[Any]) -> list[Any]:
    return list({(gpu.get("name"), gpu["compute_capability"]): gpu for gpu in gpus}.values())


def _occurrence(environment: Environment, compiled: str, gpu: Any) -> Occurrence:
    torch = lookup(environment, "distributions.torch")
    name = gpu.get("name", "the GPU")
    return Occurrence(
        f"{name} has compute capability {gpu['compute_capability']}; torch {torch} {compiled}", ("torch",)
    )


def _build(environment: Environment, runtime: str, table: Table) -> Build | None:
    compiled = lookup(environment, "torch_build.architectures")
    if not isinstance(compiled, Unknown) and compiled:
        return compiled_build(compiled)
    torch = lookup(environment, "distributions.torch")
    if isinstance(torch, Unknown) or torch is None:
        return None
    return listed_build(torch, runtime, lookup(environment, "platform.machine"), table)
