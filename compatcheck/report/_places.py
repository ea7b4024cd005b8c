"""Where a finding stands, as code hosts name places: below the repository, with forward slashes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from compatcheck.environment import Location
from compatcheck.files import repository
from compatcheck.results.findings import Finding, Report

_WHERE_VERSIONS_STAND = (
    "requirements.txt",
    "pyproject.toml",
    "uv.lock",
    "pylock.toml",
    "poetry.lock",
    "environment.yml",
    "environment.yaml",
    "Pipfile.lock",
    "pixi.toml",
    "setup.py",
)


class Place(NamedTuple):
    """A file by its path below the repository, or its whole path where it lies elsewhere.

    ``stated`` tells that the finding is about this very file; where it is not, the file is the one to change.
    """

    path: str
    line: int | None
    stated: bool

    @property
    def is_inside(self) -> bool:
        return repository.is_inside(self.path)


def place(finding: Finding, report: Report, root: str) -> Place:
    """The finding's own place, else the file that its packages were read from, else where versions can be pinned.

    Code hosts show no finding without a file, and GitHub refuses the whole report of one.
    """
    if finding.location:
        return below(finding.location, root)
    at = _read_from(finding, report.environment.locations)
    if at is None:
        files = (name for name in _WHERE_VERSIONS_STAND if os.path.isfile(name))
        at = Location(next(files, _WHERE_VERSIONS_STAND[0]))
    return below(at, root)._replace(stated=False)


def _read_from(finding: Finding, locations: Mapping[str, Location]) -> Location | None:
    named = (locations.get(f"distributions.{name}") for name in finding.packages)
    others = (at for path, at in locations.items() if path.startswith("distributions."))
    return next((at for at in named if at), None) or next((Location(at.file) for at in others), None)


def below(location: Location, root: str) -> Place:
    """The location's file below the folder ``root``, as a code host knows it."""
    file = location.file
    if os.path.isdir(file) and os.path.isfile(os.path.join(file, "config.json")):
        file = os.path.join(file, "config.json")
    return Place(repository.below(file, root), location.line, stated=True)
