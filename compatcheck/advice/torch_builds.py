"""The builds of torch to try where the one at hand cannot run here, and what a change of torch leaves to rebuild.

A proposal is no verdict: the index decides whether a build exists, and the matrix whether the solution is clean.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from compatcheck.advice.model import Demands, Solution
from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import (
    Build,
    Table,
    ahead_of,
    backend_of,
    compiled_build,
    driver_needed,
    left_behind,
    listed_build,
    minor,
    numbers,
    runs_on,
    runtime_of,
)

_INDEX = "https://download.pytorch.org/whl"
_SAME_BUILD = ("torch", "torchvision", "torchaudio")


class Judged(NamedTuple):
    """A build by its CUDA runtime; ``obstacle`` is why it cannot run here, Unknown where it may."""

    runtime: str
    obstacle: str | Unknown | None

    @property
    def backend(self) -> str:
        return _backend(self.runtime)


def index_of(backend: str) -> str:
    """The project's own index for a build: https://docs.astral.sh/uv/guides/integration/pytorch/"""
    return f"{_INDEX}/{backend}"


def ways(environment: Environment, versions: Mapping[str, str], table: Table) -> tuple[Demands, ...]:
    """Builds that can run here, where the one of ``versions`` cannot; the best of the same minor release first.

    Of one release that is the newest CUDA runtime that the driver was made for, then the others of its major version;
    then the nearest release below and above that has such a build, on the project's index, or on the package index
    for a torch that came from there. A build nobody looked into is proposed only where no other is known to run: what
    the matrix cannot judge it does not call affected, and the search would settle on it.
    """
    torch, table = versions.get("torch"), functools.cache(table)
    if torch is None or not _is_refused(environment, versions, table):
        return ()
    rows: Mapping[str, list[str]] = table("torch-cuda-builds")["builds"]
    judged = {release: _judge(environment, release, runtimes, table) for release, runtimes in rows.items()}
    here = minor(torch)
    found = [Demands(torch_backend=build.backend) for build in _free(judged.get(here, ()))]
    found += [
        Demands({"torch": specifier}, _free(judged[release])[0].backend)
        for release, specifier in _nearest(here, [release for release in judged if _free(judged[release])])
    ]
    if backend_of(torch) is None:
        defaults = {
            release: _judge(environment, release, [runtime], table)
            for release, runtime in table("torch-cuda-builds")["default"].items()
        }
        free = [release for release, builds in defaults.items() if _free(builds)]
        found += [Demands({"torch": specifier}) for _, specifier in _nearest(here, free)]
    untried = (build for build in judged.get(here, ()) if isinstance(build.obstacle, Unknown))
    return tuple(found) or tuple(Demands(torch_backend=build.backend) for build in untried)


def as_built(solution: Solution, backend: str, table: Table) -> Solution:
    """The solution with torch and its companions in a build that no index at hand serves, where there is such a build.

    The CUDA libraries that the package index would bring for a build of its own are left out: those of this one are not
    known here.
    """
    torch = solution.versions.get("torch", "")
    runtimes = table("torch-cuda-builds")["builds"].get(minor(torch), ())
    if backend_of(torch) is not None or (backend.startswith("cu") and backend not in map(_backend, runtimes)):
        return solution
    versions = {
        name: f"{version}+{backend}" if name in _SAME_BUILD and "+" not in version else version
        for name, version in solution.versions.items()
        if not name.startswith(("nvidia-", "cuda-"))
    }
    return solution._replace(versions=versions)


def refusals(environment: Environment, versions: Mapping[str, str], table: Table) -> dict[str, str]:
    """Why the builds of this torch's minor release that cannot run here cannot, by their names."""
    release, table = minor(versions.get("torch", "")), functools.cache(table)
    runtimes = table("torch-cuda-builds")["builds"].get(release, ())
    judged = _judge(environment, release, runtimes, table)
    return {build.backend: build.obstacle for build in judged if isinstance(build.obstacle, str)}


def rebuild_notes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What has to be installed anew although its own version stays, because it was compiled against another torch.

    flash-attn publishes a source only, and its wheels are named by torch's minor release; DeepSpeed refuses operators
    that were built ahead for another one:
    https://github.com/Dao-AILab/flash-attention/blob/v2.8.3/setup.py
    https://github.com/deepspeedai/DeepSpeed/blob/master/op_builder/builder.py
    """
    old, new = before.get("torch"), after.get("torch")
    if old is None or new is None or (minor(old), backend_of(old)) == (minor(new), backend_of(new)):
        return ()
    notes = {
        "flash-attn": f"was compiled against torch {old}: once torch {new} is installed, reinstall it with pip's "
        "--force-reinstall --no-cache-dir --no-deps --no-build-isolation",
        "deepspeed": (
            f"rejects operators that were prebuilt (DS_BUILD_OPS) for torch {old}; reinstall it if it "
            "has such operators"
        ),
    }
    return tuple(
        f"{name} {after[name]} {note}"
        for name, note in notes.items()
        if name in before and name in after and before[name].partition("+")[0] == after[name].partition("+")[0]
    )


def _backend(runtime: str) -> str:
    return "cu" + runtime.replace(".", "")


def _is_refused(environment: Environment, versions: Mapping[str, str], table: Table) -> bool:
    runtime = environment.get("cuda.runtime")
    if isinstance(runtime, Unknown):
        runtime = runtime_of(versions)
    if not isinstance(runtime, str):
        return False
    compiled = environment.get("torch_build.architectures")
    build = None if isinstance(compiled, Unknown) or not compiled else compiled_build(compiled)
    build = build or listed_build(versions["torch"], runtime, environment.get("platform.machine"), table)
    return isinstance(_obstacle(environment, build, runtime, table), str)


def _judge(environment: Environment, torch: str, runtimes: Iterable[str], table: Table) -> list[Judged]:
    """The builds of a minor release, the best first."""
    machine, level = environment.get("platform.machine"), _driver_level(environment, table)
    judged = [
        Judged(runtime, _obstacle(environment, listed_build(torch, runtime, machine, table), runtime, table))
        for runtime in runtimes
    ]

    def rank(build: Judged) -> tuple[bool, float]:
        number = float(build.runtime)
        beyond = level is not None and number > level
        return beyond, number if beyond else -number

    return sorted(judged, key=rank)


def _obstacle(environment: Environment, build: Build | None, runtime: str, table: Table) -> str | Unknown | None:
    driver, gpus = environment.get("cuda.driver"), environment.get("gpus")
    floor = driver_needed(environment, runtime, table)
    if isinstance(floor, str):
        return f"needs driver {floor} or newer, this machine has {driver}"
    if isinstance(gpus, Unknown) or not gpus:
        return None
    outside = left_behind(runtime, gpus, table) or ahead_of(runtime, gpus, table)
    runs = runs_on(build, gpus) if build else False if outside else None
    if runs is None:
        return Unknown()
    capabilities = sorted({gpu["compute_capability"] for gpu in gpus if gpu.get("compute_capability")})
    return None if runs else f"not compiled for GPUs of compute capability {' or '.join(capabilities)}"


def _driver_level(environment: Environment, table: Table) -> float | None:
    """The CUDA version the driver was made for: stated, else the newest toolkit that came with no newer a driver."""
    stated = environment.get("cuda.driver_api")
    if isinstance(stated, str) and numbers(stated):
        return float(minor(stated))
    driver = environment.get("cuda.driver")
    installed = numbers(driver) if isinstance(driver, str) else None
    if installed is None:
        return None
    shipped = table("cuda-driver")["shipped"].items()
    return max((float(cuda) for cuda, first in shipped if (numbers(first) or ()) <= installed), default=None)


def _free(builds: Iterable[Judged]) -> list[Judged]:
    return [build for build in builds if build.obstacle is None]


def _nearest(here: str, releases: Iterable[str]) -> list[tuple[str, str]]:
    """The nearest releases below and above, each with the range of torch that begins there and leads away."""
    ordered = sorted(releases, key=_order)
    below = [release for release in ordered if _order(release) < _order(here)][-1:]
    above = [release for release in ordered if _order(release) > _order(here)][:1]
    return [(release, f"<{_next(release)}") for release in below] + [(release, f">={release}") for release in above]


def _order(release: str) -> tuple[int, ...]:
    return numbers(release) or ()


def _next(release: str) -> str:
    major, _, low = release.partition(".")
    return f"{major}.{int(low) + 1}"
