"""``Pipfile.lock``: its ``default`` section.

Format: https://github.com/pypa/pipfile#pipfilelock
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files.json_text import json_object, line_of
from compatcheck.files.reading import read_text
from compatcheck.packages.versions import pinned
from compatcheck.project.requirements._markers import Place, applies
from compatcheck.project.requirements._resolved import Locked, facts_of
from compatcheck.project.requirements._toml import table, text

TITLE = "a Pipfile.lock"


def recognises(path: str) -> bool:
    return os.path.basename(path) == "Pipfile.lock"


def read(path: str, python: str | None = None) -> Environment:
    """The versions that the lock holds. Raises `InputError` where it is no lock, or is cut short."""
    content = read_text(path)
    value = json_object(content, path)
    listed = value.get("default")
    if not isinstance(value.get("_meta"), Mapping) or not isinstance(listed, Mapping):
        raise InputError("reading", path, "the file has no _meta and default", "regenerate it with pipenv lock")
    requires = table(table(value["_meta"]).get("requires"))
    stated = text(requires.get("python_full_version")) or text(requires.get("python_version"))
    return facts_of(_locked(listed, Place(stated or python), path, content))


def _locked(listed: Mapping[str, object], place: Place, path: str, content: str) -> Iterator[Locked]:
    for name, given in listed.items():
        package = table(given)
        marker = text(package.get("markers"))
        version = pinned(text(package.get("version"))) or ""
        at = Location(path, line_of(content, ["default", name]))
        yield Locked(name, version, at, applies(marker, place) is not False)
