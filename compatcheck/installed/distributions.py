"""The distributions installed for a target, from the names of the folders that installers leave."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from compatcheck.environment import Environment, Target
from compatcheck.installed._metadata import header_field, read_header
from compatcheck.installed._pth import path_lines
from compatcheck.packages.names import normalised

_SUFFIXES = (".dist-info", ".egg-info", ".egg-link", ".egg")
_CANONICAL_VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?\Z"
)
_PYTHON_TAG = re.compile(r"-py\d[^-]*(-[^-]+)?\Z")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")


class Installation(NamedTuple):
    """One installed distribution; ``metadata`` is the folder or file that describes it.

    ``version`` is ``None`` where neither the folder's name nor its metadata states one.
    """

    name: str
    version: str | None
    folder: str
    metadata: str


class Inventory(NamedTuple):
    """What one scan of the search path found: the distributions that win, sorted, and what is broken."""

    installed: tuple[Installation, ...]
    problems: tuple[dict[str, str], ...]


def collect(target: Target, inventory: Inventory | None = None) -> Environment:
    """``distributions``, whether they are complete, and ``distribution_problems`` where there are any."""
    inventory = inventory or scan(target)
    readable = [found for found in inventory.installed if found.version is not None]
    known: dict[str, Any] = {
        "distributions": {found.name: found.version for found in readable},
        "distributions_complete": len(readable) == len(inventory.installed),
    }
    if inventory.problems:
        known["distribution_problems"] = [dict(problem) for problem in inventory.problems]
    reasons = {
        f"distributions.{found.name}": f"{found.metadata} has no version"
        for found in inventory.installed
        if found.version is None
    }
    return Environment(known, reasons)


def scan(target: Target) -> Inventory:
    """Every installed distribution once: the first on the search path wins, as in Python."""
    winners: dict[str, Installation] = {}
    problems: list[dict[str, str]] = []
    for folder in target.search_path:
        for entry in _entries(folder, problems):
            found = _installation(folder, entry)
            if found is None:
                problems.append(_problem(entry, _why_unusable(entry)))
            elif found.name in winners:
                winners[found.name] = _rival(winners[found.name], found, problems)
            else:
                winners[found.name] = found
    installed = tuple(sorted(winners.values()))
    problems.extend(_problem(found.metadata, "has no version") for found in installed if found.version is None)
    return Inventory(installed, tuple(sorted(problems, key=lambda problem: problem["path"])))


def _entries(folder: str, problems: list[dict[str, str]]) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIXES))
    except NotADirectoryError:
        return []
    except OSError as error:
        problems.append(_problem(folder, f"cannot be read: {(error.strerror or str(error)).lower()}"))
        return []


def _installation(folder: str, entry: str) -> Installation | None:
    stem, suffix = os.path.splitext(entry)
    metadata = os.path.join(folder, entry)
    name, _, version = stem.partition("-")
    if suffix == ".egg-link":
        name, version = stem, ""
    elif suffix == ".egg":
        metadata = os.path.join(metadata, "EGG-INFO")
    if suffix != ".dist-info":
        version = _PYTHON_TAG.sub("", f"-{version}")[1:]
    if not _NAME.match(name):
        return None
    if suffix == ".egg-link":
        metadata = _linked(metadata, name) or metadata
    stated = version if _CANONICAL_VERSION.match(version) else _metadata_version(metadata) or version or None
    return Installation(normalised(name), stated, folder, metadata)


def _metadata_version(metadata: str) -> str | None:
    """The version in the metadata itself, for a folder whose name gives none that is well-formed."""
    try:
        return header_field(read_header(metadata), "Version")
    except OSError:
        return None


def _linked(link: str, name: str) -> str | None:
    """The ``.egg-info`` of a legacy editable install, beside the source that its link names."""
    source = next(iter(path_lines(link)), None)
    if source is None:
        return None
    return next(_egg_infos(os.path.join(os.path.dirname(link), source), name), None)


def _egg_infos(source: str, name: str) -> Iterator[str]:
    try:
        entries = os.listdir(source)
    except OSError:
        return
    for entry in entries:
        stem, suffix = os.path.splitext(entry)
        if suffix == ".egg-info" and normalised(stem.partition("-")[0]) == normalised(name):
            yield os.path.join(source, entry)


def _rival(winner: Installation, other: Installation, problems: list[dict[str, str]]) -> Installation:
    """The one of two installations that counts; whatever a person should know is added to the problems.

    In one folder the one that still has its metadata wins. A second copy of the same version is how
    editable installs, system site packages and Debian's packages look, and is no problem.
    """
    if winner.version == other.version:
        return winner if _has_metadata(winner) else other
    if winner.folder == other.folder:
        if not _has_metadata(winner) and _has_metadata(other):
            winner, other = other, winner
        what = f"installed twice in this folder, also as {os.path.basename(winner.metadata)}"
        problems.append(_problem(os.path.basename(other.metadata), what))
    else:
        problems.append(_problem(other.metadata, f"shadowed by version {winner.version} in {winner.folder}"))
    return winner


def _has_metadata(found: Installation) -> bool:
    try:
        read_header(found.metadata)
    except OSError:
        return False
    return True


def _why_unusable(entry: str) -> str:
    if entry.startswith("~"):
        return "left over from an interrupted uninstall"
    return "the name is not a distribution name"


def _problem(path: str, problem: str) -> dict[str, str]:
    return {"path": path, "problem": problem}
