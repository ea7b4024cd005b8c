"""What releases declare about each other, read from files that installers leave behind.

A folder is searched for ``*.dist-info/METADATA`` (a virtual environment, the cache of uv) and for archives that
`release_sources` keeps, ``<package>/<version>.zip``. Installation reports of pip lie in it as ``*.json``; these need no
download of the wheels themselves:

    pip install --dry-run --ignore-installed --no-deps --only-binary :all: --report DIR/trl-0.9.6.json trl==0.9.6
"""

from __future__ import annotations

import json
import os
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

SOURCES = ("https://pypi.org/", "https://packaging.python.org/en/latest/specifications/core-metadata/")
Declared = dict[str, dict[Version, dict[str, str]]]
"""By package and release: what is required of other packages, whatever the platform and without extras."""
_OF_SOURCES = "sdist.dist-info"


class Release(NamedTuple):
    """One final release: the lines of its requirements, and the Pythons that it takes.

    ``requires`` is None where it is not known: an archive of sources may leave that to its build.
    """

    name: str
    version: Version
    requires: Sequence[str] | None
    python: str


class Run(NamedTuple):
    """The releases from ``first`` to ``last`` that all declare the same."""

    first: str
    last: str
    value: str


def read(folders: Iterable[Path]) -> Declared:
    """Every final release of which the folders hold metadata."""
    declared: Declared = defaultdict(dict)
    for release in releases(folders):
        if release.requires is not None:
            found = conditional(release.requires)
            declared[release.name][release.version] = {
                name: text for (name, marker), text in found.items() if not marker
            }
    return declared


def releases(folders: Iterable[Path]) -> Iterator[Release]:
    """Every final release of which the folders hold metadata, a later folder's after an earlier one's."""
    for folder in folders:
        for name, version, requires, python in _found(folder):
            try:
                release = Release(canonicalize_name(name), Version(version), requires, python)
            except InvalidVersion:
                continue
            if not release.version.is_prerelease:
                yield release


def conditional(lines: Iterable[str]) -> dict[tuple[str, str], str]:
    """The versions required without extras, by package and the marker under which they are: "" holds everywhere."""
    required: dict[tuple[str, str], SpecifierSet] = {}
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        marker = str(requirement.marker or "")
        if requirement.url is None and "extra" not in marker:
            key = (canonicalize_name(requirement.name), marker)
            required[key] = required.get(key, SpecifierSet()) & requirement.specifier
    return {key: ",".join(sorted(map(str, specifier))) for key, specifier in required.items()}


def _found(folder: Path) -> Iterator[tuple[str, str, Sequence[str] | None, str]]:
    for report in sorted(folder.glob("*.json")):
        for item in json.loads(report.read_text(encoding="utf-8"))["install"]:
            data = item["metadata"]
            yield data["name"], data["version"], data.get("requires_dist", []), data.get("requires_python", "")
    for where, _, names in os.walk(folder):
        if where.endswith(".dist-info") and "METADATA" in names:
            yield _parse(Path(where, "METADATA").read_text(encoding="utf-8", errors="replace"))
        for name in sorted(names):
            if name.endswith(".zip"):
                yield from _archived(Path(where, name))


def _archived(path: Path) -> Iterator[tuple[str, str, Sequence[str] | None, str]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.endswith(".dist-info/METADATA"):
                name, version, requires, python = _parse(archive.read(member).decode("utf-8", "replace"))
                is_open = member.startswith(_OF_SOURCES) and not requires
                yield name, version, None if is_open else requires, python


def _parse(text: str) -> tuple[str, str, Sequence[str] | None, str]:
    message = HeaderParser().parsestr(text)
    requires: list[str] = message.get_all("Requires-Dist", [])
    return message["Name"], message["Version"], requires, message["Requires-Python"] or ""


def runs(values: Mapping[Version, str]) -> list[Run]:
    """Consecutive releases of one value; between two runs lies what was not read. An empty value ends a run."""
    found: list[Run] = []
    before = ""
    for version in sorted(values):
        value = values[version]
        if value and value == before:
            found[-1] = found[-1]._replace(last=str(version))
        elif value:
            found.append(Run(str(version), str(version), value))
        before = value
    return found
