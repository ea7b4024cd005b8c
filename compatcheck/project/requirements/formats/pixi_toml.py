"""``pixi.toml``: what the default environment asks for, of conda and of PyPI.

Reference: https://pixi.sh/latest/reference/pixi_manifest/
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from compatcheck.environment import Environment
from compatcheck.packages.names import normalised
from compatcheck.project.requirements._asked import Asked
from compatcheck.project.requirements._conda import CondaPackage, facts_of_conda
from compatcheck.project.requirements._constraint import conda_specifier_of
from compatcheck.project.requirements._toml import Sheet, read_toml, table, text
from compatcheck.project.requirements.formats.conda_lock import platform_among

TITLE = "a pixi.toml"


def recognises(path: str) -> bool:
    return os.path.basename(path) == "pixi.toml"


def read(path: str, python: str | None = None) -> Environment:
    """Python, distributions and CUDA that the file asks for. Raises `InputError` where it is not TOML."""
    sheet = read_toml(path)
    return facts_of_manifest(sheet, sheet.value)


def facts_of_manifest(sheet: Sheet, manifest: Mapping[str, object]) -> Environment:
    """The same of the tables that pixi knows, as ``pyproject.toml`` has them below ``tool.pixi``."""
    targets = table(manifest.get("target"))
    ours = platform_among(set(targets) | {"linux-64"})
    parts = [manifest, *(table(targets.get(name)) for name in (ours.partition("-")[0], "unix", ours))]
    conda = [package for part in parts for package in _conda_packages(table(part.get("dependencies")), sheet)]
    return facts_of_conda(conda, [each for part in parts for each in _pypi_requirements(part, sheet)])


def _conda_packages(dependencies: Mapping[str, object], sheet: Sheet) -> Iterator[CondaPackage]:
    for name, given in dependencies.items():
        version = text(given) or text(table(given).get("version"))
        build = text(table(given).get("build")).strip("*_ ")
        yield CondaPackage(name.lower(), conda_specifier_of(version), sheet.at(name), build)


def _pypi_requirements(part: Mapping[str, object], sheet: Sheet) -> Iterator[Asked]:
    for name, given in table(part.get("pypi-dependencies")).items():
        stated = table(given)
        located = next((key for key in ("git", "path", "url") if key in stated), None)
        version = text(given) or text(stated.get("version"))
        if located == "path" and stated.get("editable") is True:
            continue
        specifier = None if located else version.replace("*", "") if version.strip() == "*" else version
        yield Asked(normalised(name), specifier, sheet.at(name), f"its {located}" if located else "")
