"""What releases declare about each other, read from files that installers leave behind.

A folder is searched for ``*.dist-info/METADATA`` (a virtual environment, the cache of uv), and installation reports of
pip lie in it as ``*.json``; these need no download of the wheels themselves:

    pip install --dry-run --ignore-installed --no-deps --only-binary :all: --report DIR/trl-0.9.6.json trl==0.9.6
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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


class Run(NamedTuple):
    """The releases from ``first`` to ``last`` that all declare the same."""

    first: str
    last: str
    value: str


def read(folders: Iterable[Path]) -> Declared:
    """Every final release of which the folders hold metadata."""
    declared: Declared = defaultdict(dict)
    for folder in folders:
        for name, version, lines in _releases(folder):
            if not version.is_prerelease:
                declared[name][version] = _unconditional(lines)
    return declared


def _releases(folder: Path) -> Iterator[tuple[str, Version, list[str]]]:
    for report in sorted(folder.glob("*.json")):
        yield from _read(report)
    for where, _, names in os.walk(folder):
        if where.endswith(".dist-info") and "METADATA" in names:
            yield from _read(Path(where, "METADATA"))


def _read(path: Path) -> Iterator[tuple[str, Version, list[str]]]:
    if path.suffix == ".json":
        report = json.loads(path.read_text(encoding="utf-8"))
        found = [item["metadata"] for item in report["install"]]
        headers = [(data["name"], data["version"], data.get("requires_dist", [])) for data in found]
    else:
        message = HeaderParser().parsestr(path.read_text(encoding="utf-8", errors="replace"))
        headers = [(message["Name"], message["Version"], message.get_all("Requires-Dist", []))]
    for name, version, lines in headers:
        try:
            yield canonicalize_name(name), Version(version), lines
        except InvalidVersion:
            continue


def _unconditional(lines: Iterable[str]) -> dict[str, str]:
    """Requirements that hold everywhere: one with a marker speaks of some platforms or of an extra only."""
    required: dict[str, SpecifierSet] = {}
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None and requirement.url is None:
            name = canonicalize_name(requirement.name)
            required[name] = required.get(name, SpecifierSet()) & requirement.specifier
    return {name: ",".join(sorted(map(str, specifier))) for name, specifier in required.items()}


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
