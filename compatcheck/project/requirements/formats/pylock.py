"""``pylock.toml``, the lock that every installer may read: https://packaging.python.org/en/latest/specifications/pylock-toml/"""

from __future__ import annotations

import os
import re

from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.project.requirements._markers import Place, admits, applies
from compatcheck.project.requirements._resolved import Locked, facts_of
from compatcheck.project.requirements._toml import Package, packages, read_toml, text

TITLE = "a pylock.toml"
_NAME = re.compile(r"pylock(\.[^.]+)?\.toml\Z")


def recognises(path: str) -> bool:
    return _NAME.match(os.path.basename(path)) is not None


def read(path: str, python: str | None = None) -> Environment:
    """The versions that the lock holds without any extra. Raises `InputError` where it is no lock."""
    from packaging.pylock import Pylock, PylockValidationError

    sheet = read_toml(path)
    try:
        Pylock.from_dict(sheet.value)
    except PylockValidationError as error:
        raise InputError(
            "reading", path, str(error).splitlines()[0], "regenerate it with the tool that created it"
        ) from None
    place = Place(python, text(sheet.value.get("requires-python")))
    return facts_of(_locked(package, place) for package in packages(sheet, "packages"))


def _locked(package: Package, place: Place) -> Locked:
    marker, requires = text(package.value.get("marker")), text(package.value.get("requires-python"))
    holds, fits = applies(marker, place), admits(requires, place) if requires else True
    version = text(package.value.get("version"))
    if holds is False or fits is False:
        return Locked(package.name, version, package.at, False)
    return Locked(package.name, version, package.at, True if holds else None, marker)
