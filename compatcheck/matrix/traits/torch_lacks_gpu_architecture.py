"""The torch build holds no code that any GPU of this machine can run; a spare card beside one that runs is no fault.

Where the CUDA runtime of the build is not known, all builds of the release are asked: none of them may run, or the one
that the package index serves may be among those that do not. Where the release is not known, all for the runtime.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import (
    Build,
    ahead_of,
    builds_for_runtime,
    compiled_build,
    default_runtime,
    first_default_that_runs,
    last_default_that_runs,
    left_behind,
    listed_build,
    listed_builds,
    runs_on,
)
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import is_vendor_build


def find(environment: Environment, table: Table) -> TraitVerdict:
    runtime, gpus = environment.get("cuda.runtime"), environment.get("gpus")
    if runtime is None or not gpus:
        return TraitVerdict(False)
    if isinstance(gpus, Unknown):
        unknown = {"cuda.runtime": runtime, "gpu.compute_capability": gpus}
        return TraitVerdict(None, missing=tuple(p for p, value in unknown.items() if isinstance(value, Unknown)))
    if isinstance(runtime, Unknown):
        return _find_for_any_runtime(environment, gpus, table)
    build = _build(environment, runtime, table)
    if build is None:
        return _find_for_cuda(environment, runtime, gpus, table)
    runs = runs_on(build, gpus)
    if runs is None:
        return TraitVerdict(None, missing=("gpu.compute_capability",))
    return TraitVerdict(False) if runs else _lacking(environment, f"is {_compiled(build)}", gpus, table)


def _find_for_cuda(environment: Environment, runtime: str, gpus: Iterable[Any], table: Table) -> TraitVerdict:
    """What the CUDA version alone rules out, for a build that was not looked up."""
    oldest = left_behind(runtime, gpus, table)
    if oldest is not None:
        return _lacking(
            environment,
            f"is built with CUDA {runtime}, which supports no GPU architecture older than {oldest}",
            gpus,
            table,
        )
    newest = None if _is_vendors(environment) else ahead_of(runtime, gpus, table)
    if newest is not None:
        return _lacking(
            environment,
            f"is built with CUDA {runtime}, which supports no GPU architecture newer than {newest}",
            gpus,
            table,
        )
    usual = _usual_build(environment, runtime, table)
    if usual is not None and runs_on(usual, gpus) is False:
        lacking = _lacking(environment, f"is {_compiled(usual)} in the build for x86_64", gpus, table)
        return TraitVerdict(None, lacking.occurrences, ("platform.machine",))
    if isinstance(environment.get("distributions.torch"), Unknown):
        builds = builds_for_runtime(runtime, environment.get("platform.machine"), table)
        if builds and all(runs_on(build, gpus) is False for build in builds.values()):
            lacking = _lacking(environment, f"has no build for CUDA {runtime} with code for this GPU", gpus, table)
            return TraitVerdict(None, lacking.occurrences, ("distributions.torch",))
    return TraitVerdict(None, missing=("torch_build.architectures",))


def _usual_build(environment: Environment, runtime: str, table: Table) -> Build | None:
    """The build for x86_64, which stands for a machine that nobody has named."""
    torch = environment.get("distributions.torch")
    if not isinstance(environment.get("platform.machine"), Unknown) or not isinstance(torch, str):
        return None
    return None if _is_vendors(environment) else listed_build(torch, runtime, "x86_64", table)


def _find_for_any_runtime(environment: Environment, gpus: Iterable[Any], table: Table) -> TraitVerdict:
    missing = TraitVerdict(None, missing=("cuda.runtime",))
    torch = environment.get("distributions.torch")
    if not isinstance(torch, str) or _is_vendors(environment):
        return missing
    builds = listed_builds(torch, environment.get("platform.machine"), table)
    lacking = {runtime for runtime, build in builds.items() if runs_on(build, gpus) is False}
    if builds and len(lacking) == len(builds):
        newest = list(builds.values())[-1]
        return _lacking(environment, f"has no build for this GPU; its newest build is {_compiled(newest)}", gpus, table)
    default = default_runtime(torch, table)
    if default in lacking:
        served = f"is {_compiled(builds[default])} in the build that the package index serves, for CUDA {default}"
        return missing._replace(occurrences=_lacking(environment, served, gpus, table).occurrences)
    return missing


def _is_vendors(environment: Environment) -> bool:
    torch = environment.get("distributions.torch")
    return isinstance(torch, str) and is_vendor_build(torch)


def _compiled(build: Build) -> str:
    text = "compiled for " + ", ".join(f"{major}.{low}" for major, low in build.machine_code)
    return text + " and contains no PTX for it" if build.ptx else text


def _lacking(environment: Environment, why: str, gpus: Iterable[Any], table: Table) -> TraitVerdict:
    torch = environment.get("distributions.torch")
    named, pins = "torch", {}
    if isinstance(torch, str):
        named = f"torch {torch}"
        machine = environment.get("platform.machine")
        first = first_default_that_runs(torch, machine, gpus, table)
        last = None if first else last_default_that_runs(torch, machine, gpus, table)
        pins = {"torch": f">={first}"} if first else {"torch": f"~={last}.0"} if last else {}
    distinct = {(gpu.get("name"), gpu["compute_capability"]): gpu for gpu in gpus}
    return TraitVerdict(
        True,
        tuple(
            Occurrence(
                f"{gpu.get('name', 'the GPU')} has compute capability {gpu['compute_capability']}; {named} {why}",
                ("torch",),
                pins,
            )
            for gpu in distinct.values()
        ),
    )


def _build(environment: Environment, runtime: str, table: Table) -> Build | None:
    compiled = environment.get("torch_build.architectures")
    if not isinstance(compiled, Unknown) and compiled:
        return compiled_build(compiled)
    torch = environment.get("distributions.torch")
    if isinstance(torch, Unknown) or torch is None:
        return None
    return listed_build(torch, runtime, environment.get("platform.machine"), table)
