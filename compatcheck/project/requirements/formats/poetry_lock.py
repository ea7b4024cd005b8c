"""``poetry.lock``: the main and dev groups; optional packages, which belong to extras, are left out.

Format: https://python-poetry.org/docs/basic-usage/#installing-with-poetrylock; groups and markers since Poetry 2.
"""

from __future__ import annotations

import os
from collections import Counter

from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.packages.names import normalised
from compatcheck.project.requirements._markers import Place, admits, applies
from compatcheck.project.requirements._resolved import Locked, facts_of
from compatcheck.project.requirements._toml import Package, packages, read_toml, table, text, texts

TITLE = "a poetry.lock"
_GROUPS = {"main", "dev"}


def recognises(path: str) -> bool:
    return os.path.basename(path) == "poetry.lock"


def read(path: str, python: str | None = None) -> Environment:
    """The versions that the lock holds. Raises `InputError` where it is no lock, or is cut short."""
    sheet = read_toml(path)
    metadata = table(sheet.value.get("metadata"))
    if "content-hash" not in metadata:
        seen = f"the file ends at line {len(sheet.text.splitlines())} without its content-hash"
        raise InputError("reading", path, seen, "the file appears truncated; regenerate it with poetry lock")
    place = Place(python, _plain(text(metadata.get("python-versions"))))
    listed = packages(sheet, "package")
    versions = Counter(normalised(package.name) for package in listed)
    return facts_of(_locked(package, place, versions[normalised(package.name)] > 1) for package in listed)


def _locked(package: Package, place: Place, several: bool) -> Locked:
    """Without markers, as Poetry 1 wrote them, the range of Python versions tells several versions apart."""
    value = package.value
    groups = texts(value.get("groups"))
    version = str(value.get("version", ""))
    stated = value.get("markers")
    marker = text(stated) or text(table(stated).get("main"))
    requires = _plain(text(value.get("python-versions")))
    fits = admits(requires, place) if requires and several and not marker else True
    holds = applies(marker, place)
    if value.get("optional") is True or (groups and not _GROUPS & set(groups)) or fits is False or holds is False:
        return Locked(package.name, version, package.at, False)
    return Locked(package.name, version, package.at, True if fits and holds else None, marker or f"Python {requires}")


def _plain(requires: str) -> str:
    """Poetry's range of Python versions as PEP 440 has it; ``*`` and what PEP 440 cannot say is no demand."""
    from compatcheck.project.requirements._constraint import specifier_of

    return specifier_of(requires) or ""
