"""The torch build holds no code that any GPU of this machine can run; a spare card beside one that runs is no fault."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from compatcheck.matrix._match import Occurrence, TraitVerdict
from compatcheck.matrix._traits import Table
from compatcheck.matrix.traits._torch_companion import minor
from compatcheck.model import Environment, Unknown, lookup

Capability = tuple[int, int]


class Build(NamedTuple):
    """The compute capabilities a build has machine code and PTX for."""

    machine_code: tuple[Capability, ...]
    ptx: tuple[Capability, ...]


def find(environment: Environment, table: Table) -> TraitVerdict:
    runtime, gpus = lookup(environment, "cuda.runtime"), lookup(environment, "gpus")
    if runtime is None or not gpus:
        return TraitVerdict(False)
    if isinstance(runtime, Unknown) or isinstance(gpus, Unknown):
        unknown = {"cuda.runtime": runtime, "gpu.compute_capability": gpus}
        return TraitVerdict(None, missing=tuple(p for p, value in unknown.items() if isinstance(value, Unknown)))
    build = _build(environment, runtime, table)
    if build is None:
        return TraitVerdict(None, missing=("torch_build.architectures",))
    known = [gpu for gpu in gpus if gpu.get("compute_capability")]
    if any(_runs(build, gpu["compute_capability"]) for gpu in known):
        return TraitVerdict(False)
    if len(known) < len(gpus):
        return TraitVerdict(None, missing=("gpu.compute_capability",))
    return TraitVerdict(True, tuple(_occurrence(environment, build, gpu) for gpu in _distinct(known)))


def _distinct(gpus: Iterable[Any]) -> list[Any]:
    return list({(gpu.get("name"), gpu["compute_capability"]): gpu for gpu in gpus}.values())


def _occurrence(environment: Environment, build: Build, gpu: Any) -> Occurrence:
    torch = lookup(environment, "distributions.torch")
    compiled = ", ".join(f"{major}.{low}" for major, low in build.machine_code)
    name = gpu.get("name", "the GPU")
    summary = f"{name} has compute capability {gpu['compute_capability']}; torch {torch} is compiled for {compiled}" + (
        " and carries no PTX that would do" if build.ptx else ""
    )
    return Occurrence(summary, ("torch",))


def _build(environment: Environment, runtime: str, table: Table) -> Build | None:
    compiled = lookup(environment, "torch_build.architectures")
    if not isinstance(compiled, Unknown) and compiled:
        return Build(_capabilities(compiled, "sm"), _capabilities(compiled, "compute"))
    torch, machine = lookup(environment, "distributions.torch"), lookup(environment, "platform.machine")
    if isinstance(torch, Unknown) or torch is None:
        return None
    for row in table("torch-architectures")["build"]:
        if (row["torch"], row["cuda"], row["machine"]) == (minor(torch), minor(runtime), machine):
            capabilities = tuple(_capability(text) for text in row["architectures"])
            return Build(capabilities, capabilities[-1:] if row["ptx"] else ())
    return None


def _capabilities(compiled: Iterable[str], prefix: str) -> tuple[Capability, ...]:
    """``sm_86`` and ``sm_90a`` as (8, 6) and (9, 0); the last digit is the minor number."""
    matches = (re.fullmatch(rf"{prefix}_(\d+)(\d)[af]?", text) for text in compiled)
    return tuple((int(match[1]), int(match[2])) for match in matches if match)


def _capability(text: str) -> Capability:
    major, _, low = text.partition(".")
    return int(major), int(low or 0)


def _runs(build: Build, text: str) -> bool:
    """Machine code runs on its own major version from its minor on; PTX on everything at least as new."""
    gpu = _capability(text)
    return any(code[0] == gpu[0] and code[1] <= gpu[1] for code in build.machine_code) or any(
        code <= gpu for code in build.ptx
    )
