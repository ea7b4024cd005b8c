"""Packages of conda channels as facts: what Python calls them, and the CUDA that some of them are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.packages.names import normalised
from compatcheck.packages.versions import pinned
from compatcheck.project.requirements._asked import Asked, facts_of
from compatcheck.project.requirements._constraint import conda_specifier_of

_OF_PYTHON = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch", "torchtriton": "triton"}
_OF_CUDA = {
    "pytorch-cuda": "cuda.runtime",
    "cudatoolkit": "cuda.runtime",
    "cuda-version": "cuda.runtime",
    "cuda-runtime": "cuda.runtime",
    "cuda-cudart": "cuda.runtime",
    "cuda-toolkit": "cuda.toolkit",
    "cuda-nvcc": "cuda.toolkit",
    "cuda-compiler": "cuda.toolkit",
    "cudnn": "cuda.cudnn",
    "nccl": "cuda.nccl",
}
CUDA_PACKAGES = frozenset((*_OF_CUDA, "cpuonly"))
_TORCH = frozenset(("pytorch", "pytorch-gpu", "pytorch-cpu", "pytorch-cuda", "cpuonly"))
_MINOR_ONLY = ("cuda.runtime", "cuda.toolkit")
_BUILD = re.compile(r"(?:^|_)cuda(\d+\.\d+)(?:_cudnn(\d[\d.]*\d))?")
_CONDA_FORGE_BUILD = re.compile(r"^cuda(\d{2})(\d)[_py]|^cuda_?(\d{2})(\d)_")
_SPEC = re.compile(r"(?:[^\s\[:]*::)?([A-Za-z0-9_][\w.-]*?)\s*(?=[\s=<>!~\[^]|$)(.*)\Z")


class CondaPackage(NamedTuple):
    """A package of a conda channel, with its specifier (PEP 440; None where that cannot say it) and its build."""

    name: str
    specifier: str | None
    at: Location
    build: str = ""


def package_of(spec: str, at: Location) -> CondaPackage | None:
    """The package of a match specification, as ``pytorch::pytorch=2.5.0=py3.11_cuda11.8``; None where it is none.

    See https://docs.conda.io/projects/conda-build/en/latest/resources/package-spec.html#package-match-specifications.
    """
    found = _SPEC.match(spec.partition("#")[0].strip())
    if found is None:
        return None
    name, rest = found[1].lower(), found[2].strip()
    bracketed = (
        dict(re.findall(r"(version|build)\s*=\s*[\"']?([^\"',\]]+)", rest[rest.find("[") :])) if "[" in rest else {}
    )
    rest = rest.partition("[")[0].strip()
    build = bracketed.get("build", "")
    plain = re.fullmatch(r"(={1,2})?\s*([^\s=<>!~,|]+)(?:\s*=\s*|\s+)([A-Za-z0-9_*.]+)", rest)
    if plain:
        rest, build = (plain[1] or "=") + plain[2], plain[3]
    return CondaPackage(name, conda_specifier_of(bracketed.get("version", rest)), at, build)


def facts_of_conda(packages: Iterable[CondaPackage], others: Iterable[Asked] = ()) -> Environment:
    """What conda packages, and what pip adds to them, come to: Python, distributions and CUDA.

    The CUDA that conda installs is torch's own only where torch comes from conda too.
    """
    listed, added = list(packages), list(others)
    asked: list[Asked] = []
    known: dict[str, str | None] = {}
    places: dict[str, Location] = {}
    cuda: dict[str, str | None] = {}
    for package in listed:
        version = pinned(package.specifier or "")
        minor = _minor(package.specifier or "")
        path = _OF_CUDA.get(package.name)
        if package.name == "python":
            if version or minor:
                known["python"] = version or minor
                places["python"] = package.at
        elif package.name in ("cpuonly", "pytorch-cpu"):
            cuda["runtime"] = None
            places["cuda.runtime"] = package.at
        elif path is not None:
            stated = minor if path in _MINOR_ONLY else version or minor
            if stated and path[5:] not in cuda:
                cuda[path[5:]] = stated
                places[path] = package.at
        if path is None and package.name not in ("python", "pip", "cpuonly"):
            asked.append(_requirement(package))
    if not {package.name for package in listed} & _TORCH or any(each.name == "torch" for each in added):
        for fact in ("runtime", "cudnn", "nccl"):
            cuda.pop(fact, None)
            places.pop(f"cuda.{fact}", None)
    for package in listed:
        if package.name == "pytorch":
            for fact, stated in _parse_build(package.build).items():
                cuda[fact] = stated
                places[f"cuda.{fact}"] = package.at
    facts = facts_of([*asked, *added])
    stated_facts: dict[str, Any] = {**facts.facts, **known, **({"cuda": cuda} if cuda else {})}
    return Environment(stated_facts, facts.reasons, {**facts.locations, **places})


def python_of(packages: Iterable[CondaPackage]) -> str | None:
    """The Python version that the packages name, as far as they do."""
    stated = next((each.specifier or "" for each in packages if each.name == "python"), "")
    return pinned(stated) or _minor(stated)


def _requirement(package: CondaPackage) -> Asked:
    name = normalised(_OF_PYTHON.get(package.name, package.name))
    if package.specifier is None:
        return Asked(name, None, package.at, "what conda detects for a condition of its own")
    return Asked(name, package.specifier, package.at)


def _minor(specifier: str) -> str | None:
    """``12.1`` of ``==12.1.*``, ``==12.1`` and ``==12.1.105``."""
    found = re.fullmatch(r"==(\d+\.\d+)(?:\.\*|\.\d+)*", specifier)
    return found[1] if found else None


def _parse_build(build: str) -> dict[str, str | None]:
    """CUDA and cuDNN of a build such as ``py3.11_cuda11.8_cudnn9.1.0_0``, ``cuda126_py312_1`` or ``cpu_py311``."""
    found = _BUILD.search(build)
    if found:
        return {"runtime": found[1], **({"cudnn": found[2]} if found[2] else {})}
    short = _CONDA_FORGE_BUILD.match(build.removeprefix("gpu_"))
    if short:
        return {"runtime": f"{short[1] or short[3]}.{short[2] or short[4]}"}
    return {"runtime": None} if build.startswith("cpu_") or "_cpu_" in build else {}


def parse_file_name(url: str) -> tuple[str, str, str] | None:
    """Name, version and build of a package from the name of its file."""
    stem = re.sub(r"(\.conda|\.tar\.bz2)\Z", "", os.path.basename(url.partition("#")[0]))
    parts = stem.rsplit("-", 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None
