"""``pdm.lock``: the default and dev groups.

Format: https://pdm-project.org/latest/usage/lockfile/
"""

from __future__ import annotations

import os

from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.packages.names import normalised
from compatcheck.project.requirements._markers import Place, admits, applies
from compatcheck.project.requirements._resolved import Locked, facts_of
from compatcheck.project.requirements._toml import Package, packages, read_toml, table, text, texts

TITLE = "a pdm.lock"
_GROUPS = {"default", "dev"}


def recognises(path: str) -> bool:
    return os.path.basename(path) == "pdm.lock"


def read(path: str, python: str | None = None) -> Environment:
    """The versions that the lock holds. Raises `InputError` where it is no lock, or is cut short."""
    sheet = read_toml(path)
    metadata = table(sheet.value.get("metadata"))
    listed = packages(sheet, "package")
    if "lock_version" not in metadata:
        raise InputError("reading", path, "the file has no lock_version", "regenerate it with pdm lock")
    targets = metadata.get("targets")
    demands = {text(table(each).get("requires_python")) for each in targets} if isinstance(targets, list) else set()
    place = Place(python, demands.pop() if len(demands) == 1 else "")
    held = {normalised(package.name) for package in listed}
    for package in listed:
        for dependency in texts(package.value.get("dependencies")):
            _require_held(dependency, package, held, sheet.text, place)
    return facts_of(_locked(package, place) for package in listed)


def _require_held(dependency: str, package: Package, held: set[str], content: str, place: Place) -> None:
    """Raise `InputError` where the file lacks its end: packages stand in the order of their names."""
    from packaging.requirements import Requirement

    try:
        requirement = Requirement(dependency)
    except ValueError:
        return
    marker = str(requirement.marker or "")
    if applies(marker, place) and normalised(requirement.name) > max(held):
        last = len(content.splitlines())
        seen = f"the file ends at line {last} without {requirement.name}, which {package.name} depends on"
        raise InputError("reading", package.at.file, seen, "the file appears truncated; regenerate it with pdm lock")


def _locked(package: Package, place: Place) -> Locked:
    value = package.value
    groups = texts(value.get("groups"))
    marker, requires = text(value.get("marker")), text(value.get("requires_python"))
    holds = applies(marker, place)
    fits = admits(requires, place) if requires else True
    version = str(value.get("version", ""))
    if holds is False or fits is False or (groups and not _GROUPS & set(groups)):
        return Locked(package.name, version, package.at, False)
    return Locked(package.name, version, package.at, True if holds else None, marker)
