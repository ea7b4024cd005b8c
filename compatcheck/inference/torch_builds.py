"""What stages agree on about builds of torch: the CUDA runtime of one, and whether a machine can run it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Table as Table

Capability = tuple[int, int]

_RUNTIME_PACKAGE = re.compile(r"(nvidia-cuda-runtime(-cu\d+)?|pytorch-cuda)$")
_BACKEND = re.compile(r"(cpu|cu\d+|rocm\d+(?:\.\d+)*|xpu)(?:\.|$)")
_CUDA_BACKEND = re.compile(r"cu(\d+)(\d)$")
_DATA_CENTRE = re.compile(r"\b(?:tesla|[ABHLPTV]\d{1,3}[a-z]?|G[BH][23]00)\b", re.I)
_CONSUMER = re.compile(r"\b(?:geforce|titan|[rg]tx ?\d{3,4})(?! *ada)\b", re.I)


class Build(NamedTuple):
    """The compute capabilities a build has machine code and PTX for."""

    machine_code: tuple[Capability, ...]
    ptx: tuple[Capability, ...]


def backend_of(version: str) -> str | None:
    """``cu118`` of ``2.5.0+cu118``; None where no label tells, as in what the package index serves."""
    match = _BACKEND.match(version.partition("+")[2])
    return match[1] if match else None


def runtime_of(distributions: Mapping[str, str | None]) -> str | Unknown | None:
    """The CUDA runtime that torch is built with, None for a build without: by its label, else by the package beside it.

    What the package index serves takes its runtime from a distribution, as torch 1.13 to 2.15 all do; a conda
    environment chooses its build by ``pytorch-cuda``: https://anaconda.org/pytorch/pytorch-cuda
    """
    backend = backend_of(distributions.get("torch") or "")
    if backend is None:
        given = {minor(each) for name, each in distributions.items() if each and _RUNTIME_PACKAGE.match(name)}
        return given.pop() if len(given) == 1 else Unknown()
    match = _CUDA_BACKEND.match(backend)
    if match:
        return f"{match[1]}.{match[2]}"
    return Unknown() if backend == "xpu" else None


def minor(version: str) -> str:
    """``2.5`` of ``2.5.1+cu124``."""
    return ".".join(version.partition("+")[0].split(".")[:2])


def numbers(text: str) -> tuple[int, ...] | None:
    """``(535, 104, 5)`` of ``535.104.05``, None for what is not numbers and dots."""
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d+(\.\d+)*", text) else None


def driver_needed(environment: Environment, runtime: str, table: Table) -> str | Unknown | None:
    """The driver that a CUDA runtime needs at the least, where this machine's is older; None where that will do.

    A driver API level of the runtime's major or above acquits: a forward-compatibility package may provide it. So does
    the package that an image holds, where its release is known to work with the driver.
    """
    driver, system = environment.get("cuda.driver"), environment.get("platform.system")
    if driver is None or system == "Darwin":
        return None
    if isinstance(driver, Unknown):
        return driver
    major = runtime.split(".")[0]
    floor: str = table("cuda-driver")["windows_floor" if system == "Windows" else "floor"].get(major, "")
    installed, needed = numbers(driver), numbers(floor)
    if installed is None or needed is None:
        return Unknown()
    if installed >= needed or _offers(environment, int(major)):
        return None
    carried = carried_forward(environment, table)
    return Unknown() if carried is None else None if carried else floor


def row_of_image(environment: Environment, table: Table) -> Mapping[str, Any] | None:
    """What is listed of the image that the environment runs in; None where it runs in none, or nobody looked it up."""
    name, release = (environment.get(f"image.{part}") for part in ("name", "release"))
    if not isinstance(name, str) or not isinstance(release, str):
        return None
    listed = table("ngc-pytorch")
    row: Mapping[str, object] | None = listed["releases"].get(release) if name == listed["image"] else None
    return row


def carried_forward(environment: Environment, table: Table) -> bool | None:
    """Whether the CUDA package in an NVIDIA image lets the GPUs run on a driver that is older than the image's CUDA.

    It does for data-centre GPUs and the driver branches that the release notes list; None where either is not known.
    https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    """
    if not isinstance(environment.get("image.release"), str):
        return False
    names = [str(gpu.get("name") or "") for gpu in environment.facts.get("gpus") or ()]
    if names and all(_CONSUMER.search(name) for name in names):
        return False
    driver = numbers(str(environment.get("cuda.driver")))
    branches = [numbers(each) for each in (row_of_image(environment, table) or {}).get("forward", ())]
    if not branches or driver is None:
        return None
    if not any(branch and driver[0] == branch[0] and driver >= branch for branch in branches):
        return False
    return True if names and all(_DATA_CENTRE.search(name) for name in names) else None


def _offers(environment: Environment, major: int) -> bool:
    level = environment.get("cuda.driver_api")
    offered = numbers(level) if isinstance(level, str) else None
    return offered is not None and offered[0] >= major


def listed_build(torch: str, runtime: str, machine: object, table: Table) -> Build | None:
    """What the project's own build of a release for a CUDA runtime is compiled for; None where it was not looked up."""
    wanted = minor(torch), minor(runtime), machine
    for row in table("torch-architectures")["build"]:
        if (row["torch"], row["cuda"], row["machine"]) == wanted:
            capabilities = tuple(_capability(text) for text in row["architectures"])
            return Build(capabilities, capabilities[-1:] if row["ptx"] else ())
    return None


def listed_builds(torch: str, machine: object, table: Table) -> dict[str, Build]:
    """The project's own builds of a release by CUDA runtime; none where one of them was not looked up.

    ``machine`` may be unknown; the builds for x86_64 stand for it then.
    """
    known = machine if isinstance(machine, str) else "x86_64"
    runtimes = table("torch-cuda-builds")["builds"].get(minor(torch), ())
    builds = {runtime: listed_build(torch, runtime, known, table) for runtime in runtimes}
    return {runtime: build for runtime, build in builds.items() if build} if all(builds.values()) else {}


def builds_for_runtime(runtime: str, machine: object, table: Table) -> dict[str, Build]:
    """The project's own builds for a CUDA runtime by minor release, as far as they were looked up."""
    releases = table("torch-cuda-builds")["builds"]
    known = machine if isinstance(machine, str) else "x86_64"
    builds = {release: listed_build(release, runtime, known, table) for release in releases}
    return {release: build for release, build in builds.items() if build}


def default_runtime(torch: str, table: Table) -> str | None:
    """The CUDA runtime of the build that the package index serves for Linux."""
    runtime: str | None = table("torch-cuda-builds")["default"].get(minor(torch))
    return runtime


def first_default_that_runs(torch: str, machine: object, gpus: Iterable[Mapping[str, Any]], table: Table) -> str | None:
    """The minor release from which on the builds of the package index have code for a GPU, later than this one."""
    gpus, known = tuple(gpus), machine if isinstance(machine, str) else "x86_64"
    first = None
    for release, runtime in table("torch-cuda-builds")["default"].items():
        build = listed_build(release, runtime, known, table)
        if build is not None and not runs_on(build, gpus):
            first = None
        elif build is not None and _numbered(release) > _numbered(minor(torch)):
            first = first or str(release)
    return first


def last_default_that_runs(
    torch: str, machine: object, gpus: Iterable[Mapping[str, object]], table: Table
) -> str | None:
    """The newest minor release before this one whose build of the package index has code for a GPU."""
    gpus, known = tuple(gpus), machine if isinstance(machine, str) else "x86_64"
    last = None
    for release, runtime in table("torch-cuda-builds")["default"].items():
        build = listed_build(release, runtime, known, table)
        if build is not None and _numbered(release) < _numbered(minor(torch)) and runs_on(build, gpus):
            last = str(release)
    return last


def _numbered(version: str) -> tuple[int, ...]:
    return numbers(version) or ()


def compiled_build(architectures: Iterable[str]) -> Build:
    """A build by the architectures its library names: ``sm_86`` and ``compute_90`` are (8, 6) and (9, 0)."""
    architectures = tuple(architectures)
    return Build(_capabilities(architectures, "sm"), _capabilities(architectures, "compute"))


def _capabilities(compiled: Iterable[str], prefix: str) -> tuple[Capability, ...]:
    """The last digit is the minor number; ``sm_90a`` counts as (9, 0)."""
    matches = (re.fullmatch(rf"{prefix}_(\d+)(\d)[af]?", text) for text in compiled)
    return tuple((int(match[1]), int(match[2])) for match in matches if match)


def _capability(text: str) -> Capability:
    major, _, low = text.partition(".")
    return int(major), int(low or 0)


def runs_on(build: Build, gpus: Iterable[Mapping[str, Any]]) -> bool | None:
    """Whether any of the GPUs can run the build's code; a spare card beside one that can is no fault."""
    capabilities = [gpu.get("compute_capability") for gpu in gpus]
    if any(known and _runs(build, known) for known in capabilities):
        return True
    return False if all(capabilities) else None


def left_behind(runtime: str, gpus: Iterable[Mapping[str, Any]], table: Table) -> str | None:
    """The oldest compute capability that a CUDA version compiles for, where every GPU is older still; else None."""
    oldest: str | None = table("torch-architectures")["oldest"].get(runtime.split(".")[0])
    capabilities = [gpu.get("compute_capability") for gpu in gpus]
    older = oldest and all(known and _capability(known) < _capability(oldest) for known in capabilities)
    return oldest if older else None


def ahead_of(runtime: str, gpus: Iterable[Mapping[str, Any]], table: Table) -> str | None:
    """The newest compute capability that a CUDA version compiles for, where every GPU is of a later one; else None."""
    newest: str | None = table("torch-architectures")["newest"].get(minor(runtime))
    capabilities = [gpu.get("compute_capability") for gpu in gpus]
    newer = newest and all(known and _capability(known)[0] > _capability(newest)[0] for known in capabilities)
    return newest if newer else None


def _runs(build: Build, text: str) -> bool:
    """Machine code runs on its own major version from its minor on; PTX on everything at least as new."""
    gpu = _capability(text)
    return any(code[0] == gpu[0] and code[1] <= gpu[1] for code in build.machine_code) or any(
        code <= gpu for code in build.ptx
    )
