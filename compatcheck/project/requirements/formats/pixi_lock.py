"""``pixi.lock``: the default environment on this platform.

Format, versions 4 to 6: https://pixi.sh/latest/workspace/lockfile/
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files.secrets import excerpt
from compatcheck.packages.names import normalised
from compatcheck.project.requirements._asked import Asked, wheel_at
from compatcheck.project.requirements._conda import CUDA_PACKAGES, CondaPackage, facts_of_conda, parse_file_name
from compatcheck.project.requirements._yaml import items, line_of, mapping, read_yaml
from compatcheck.project.requirements.formats.conda_lock import platform_among

TITLE = "a pixi.lock"


def recognises(path: str) -> bool:
    return os.path.basename(path) == "pixi.lock"


def read(path: str, python: str | None = None) -> Environment:
    """Python, distributions and CUDA of the lock. Raises `InputError` where it is none, or is cut short."""
    value = read_yaml(path)
    environments = mapping(value.get("environments"))
    default = mapping(mapping(environments.get("default")).get("packages"))
    if not default:
        raise InputError("reading", path, "the file has no default environment", "regenerate it with pixi lock")
    described = {_location(each): each for each in map(mapping, items(value.get("packages")))}
    used = [mapping(each) for each in items(default.get(platform_among(set(default))))]
    lacking = next((each for each in used if _location(each) not in described), None)
    if lacking is not None:
        named = excerpt(_location(lacking)[1], 120)
        seen = f"the file lacks the description of {named}, which line {line_of(lacking)} names"
        raise InputError("reading", path, seen, "the file appears truncated; regenerate it with pixi lock")
    conda = [each for each in (_conda(use, described[_location(use)], path) for use in used if "conda" in use) if each]
    return facts_of_conda(conda, list(_pypi_requirements(used, described, path)))


def _location(entry: Mapping[str, object]) -> tuple[str, str]:
    """How one entry names its file: ``conda`` or ``pypi`` and the URL; before version 6 a description says its kind."""
    kind = str(entry.get("kind") or ("pypi" if "pypi" in entry else "conda"))
    return kind, str(entry.get("url") or entry.get(kind) or entry.get("path") or "")


def _conda(use: Mapping[str, object], package: Mapping[str, object], path: str) -> CondaPackage | None:
    """The package, or None for what is no library of Python."""
    file = parse_file_name(_location(use)[1])
    name, version = (
        str(package.get("name") or (file and file[0]) or ""),
        str(package.get("version") or (file and file[1]) or ""),
    )
    build = str(package.get("build") or (file and file[2]) or "")
    depends = {str(each).split(" ")[0] for each in items(package.get("depends"))}
    if not name or not (name == "python" or name in CUDA_PACKAGES or depends & {"python", "python_abi"}):
        return None
    return CondaPackage(name, f"=={version}", Location(path, line_of(use)), build)


def _pypi_requirements(
    used: list[Mapping[str, object]], described: Mapping[tuple[str, str], Mapping[str, object]], path: str
) -> Iterator[Asked]:
    for use in used:
        if "://" not in str(use.get("pypi", "")):
            continue  # conda's, or the project itself
        package = described[_location(use)]
        wheel = wheel_at(str(use["pypi"]))
        name, version = str(package.get("name") or (wheel and wheel[0]) or ""), str(package.get("version") or "")
        version = version or (wheel[1] if wheel else "")
        if name:
            specifier = f"=={version}" if version else None
            yield Asked(normalised(name), specifier, Location(path, line_of(use)), "a location")
