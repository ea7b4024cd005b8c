"""``conda-lock.yml``: the main packages for this platform, those of conda and those of pip.

Format: https://conda.github.io/conda-lock/output/#unified-lockfile
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.packages.names import normalised
from compatcheck.project.requirements._asked import Asked
from compatcheck.project.requirements._conda import CUDA_PACKAGES, CondaPackage, facts_of_conda, parse_file_name
from compatcheck.project.requirements._yaml import items, line_of, mapping, read_yaml

TITLE = "a conda-lock.yml"
_OF_PYTHON = ("python", "python_abi")


def recognises(path: str) -> bool:
    name = os.path.basename(path).lower()
    return name.endswith(("conda-lock.yml", "conda-lock.yaml"))


def read(path: str, python: str | None = None) -> Environment:
    """Python, distributions and CUDA of the lock, on this platform where it holds that, else on Linux.

    Raises `InputError` where it is no such lock.
    """
    value = read_yaml(path)
    listed = [mapping(each) for each in items(value.get("package"))]
    if not isinstance(value.get("metadata"), Mapping) or not listed:
        raise InputError("reading", path, "the file has no metadata and package", "regenerate it with conda-lock")
    require_whole(listed, path)
    ours = platform_among({str(each.get("platform", "")) for each in listed})
    chosen = [each for each in listed if each.get("platform") == ours and each.get("category", "main") == "main"]
    conda = [_conda(each, path) for each in chosen if each.get("manager") != "pip" and _counts(each)]
    return facts_of_conda(conda, list(_pip_requirements(chosen, path)))


def require_whole(listed: list[Mapping[str, Any]], path: str) -> None:
    """Raise `InputError` where a package lacks its name or version: the file lacks its end."""
    for each in listed:
        if not each.get("name") or not each.get("version"):
            line = line_of(each)
            seen = f"line {line}: a package has no name and version" if line else "a package has no name"
            raise InputError("reading", path, seen, "regenerate it; it appears truncated")


def platform_among(platforms: set[str]) -> str:
    """Conda's name of the platform we run on, where it is one of those, else of Linux."""
    system = {"Linux": "linux", "Darwin": "osx", "Windows": "win"}.get(platform.system(), "linux")
    machine = {"x86_64": "64", "AMD64": "64", "aarch64": "aarch64", "arm64": "arm64"}.get(platform.machine(), "64")
    return next((each for each in (f"{system}-{machine}", "linux-64") if each in platforms), min(platforms, default=""))


def _counts(package: Mapping[str, object]) -> bool:
    """Whether it is Python, a library for it, or a part of CUDA that we speak of; compilers and C libraries are not."""
    name = str(package.get("name"))
    return name == "python" or name in CUDA_PACKAGES or bool({*mapping(package.get("dependencies"))} & {*_OF_PYTHON})


def _conda(package: Mapping[str, object], path: str) -> CondaPackage:
    file = parse_file_name(str(package.get("url", "")))
    at = Location(path, line_of(package.get("name")))
    return CondaPackage(str(package["name"]), f"=={package['version']}", at, file[2] if file else "")


def _pip_requirements(chosen: list[Mapping[str, object]], path: str) -> Iterator[Asked]:
    for each in chosen:
        if each.get("manager") == "pip":
            name = normalised(str(each["name"]))
            yield Asked(name, f"=={each['version']}", Location(path, line_of(each.get("name"))))
