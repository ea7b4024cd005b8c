"""Declared requirements that the environment breaks: what ``pip check`` reports."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from compatcheck.environment import Environment, Target
from compatcheck.files import limits
from compatcheck.files.reading import open_bytes, open_text
from compatcheck.files.secrets import excerpt
from compatcheck.installed._metadata import read_header, text
from compatcheck.installed.distributions import Installation, Inventory, scan
from compatcheck.installed.host import machine, system
from compatcheck.packages.fast_requirements import Requirement, acquits, marker_value, parse
from compatcheck.packages.markers import evaluate_marker
from compatcheck.packages.names import normalised

_FIELD = b"Requires-Dist:"
_PLAIN_EXTRA = re.compile(rb"[^;@]*;\s*(?:\([^()@]*\)\s*and\s*)?extra\s*==\s*(['\"])[^'\"]+\1\s*\Z")
_SOME_EXTRA = re.compile(rb"\bextra\s*==\s*(?:'[^']+'|\"[^\"]+\")")
_UPPER_ENDS = ("<", "<=", "==", "~=", "===")
_EGG_SECTION = re.compile(r"\[([^:\]]*):?([^\]]*)\]\Z")


class _Line(NamedTuple):
    """One requirement as a distribution declares it."""

    owner: Installation
    requirement: str


def collect(target: Target, inventory: Inventory | None = None) -> Environment:
    """``unmet_requirements``, ``distributions_requested``, and ``distribution_problems`` where metadata is invalid."""
    inventory = inventory or scan(target)
    markers = marker_environment(target)
    problems: list[dict[str, str]] = []
    lines = [line for found in inventory.installed for line in _declared_by(found, problems)]
    unmet = _unmet(lines, inventory, markers, problems)
    known: dict[str, Any] = {
        "unmet_requirements": unmet,
        "distributions_requested": _requested(lines, inventory, markers),
    }
    if problems:
        known["distribution_problems"] = problems
    return Environment(known)


def top_level(target: Target) -> tuple[str, ...]:
    """The installed distributions that no other one asks for, sorted.

    A project installed from a folder of its own is left out, as no index has it; what it asks for is not, unless that
    project is compatcheck itself.
    """
    inventory, markers = scan(target), marker_environment(target)
    local = {found.name for found in inventory.installed if _is_local(found) and found.name != "compatcheck"}
    lines = [line for found in inventory.installed if found.name not in local for line in _declared_by(found, [])]
    required = local | _required(lines, markers)
    return tuple(found.name for found in inventory.installed if found.name not in required)


def _required(lines: Iterable[_Line], markers: Mapping[str, str]) -> set[str]:
    """What others ask for, or may on this platform."""
    asked = ((line.owner.name, parse(line.requirement)) for line in lines)
    return {
        simple.name
        for owner, simple in asked
        if simple is not None and simple.name != owner and marker_value(simple.marker, markers) is not False
    }


def _requested(lines: list[_Line], inventory: Inventory, markers: Mapping[str, str]) -> list[str]:
    """What no other distribution requires, and what an installer was told to install, sorted.

    Installers mark the latter (PEP 376). They mark all of a lock file, so marks on most distributions tell nothing.
    """
    names = {found.name for found in inventory.installed}
    marked = {found.name for found in inventory.installed if os.path.exists(os.path.join(found.metadata, "REQUESTED"))}
    return sorted(names - _required(lines, markers) | (marked if 2 * len(marked) < len(names) else set()))


def movable(target: Target, names: Collection[str]) -> set[str]:
    """What an installer of other versions of these distributions moves along, or may, as far as metadata tells.

    That is what they ask for, as they are installed, within a window: ``tokenizers<0.24,>=0.22``, ``triton==3.2.0``;
    what is asked for from some version on may stay. And it is what is there for compatcheck alone, where it is
    installed in the environment that it judges.
    """
    markers, inventory = marker_environment(target), scan(target)
    needs: dict[str, set[str]] = {found.name: set() for found in inventory.installed}
    held: set[str] = set()
    for found in inventory.installed:
        for line in _declared_by(found, []):
            asked = parse(line.requirement)
            if asked is None or marker_value(asked.marker, markers) is False:
                continue
            needs[found.name].add(asked.name)
            if found.name in names and any(operator in _UPPER_ENDS for operator, _ in asked.clauses):
                held.add(asked.name)
    ours = _reached({"compatcheck"}, needs)
    return held | (ours - _reached(needs.keys() - ours, needs))


def _reached(names: Collection[str], needs: Mapping[str, Collection[str]]) -> set[str]:
    """The names and all that these need in turn, as far as it is installed."""
    found: set[str] = set()
    left = [name for name in names if name in needs]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [each for each in needs[name] if each in needs]
    return found


def _is_local(found: Installation) -> bool:
    """Installed from a folder or file rather than from an index (PEP 610)."""
    try:
        with open_text(os.path.join(found.metadata, "direct_url.json"), errors="strict") as stream:
            return '"file:' in stream.read(limits.HEAD_BYTES)
    except (OSError, UnicodeDecodeError):
        return False


def marker_environment(target: Target) -> dict[str, str]:
    """The values of the environment markers for the target; ``extra`` is empty."""
    pypy = any("pypy" in os.path.basename(os.path.dirname(folder)) for folder in target.search_path)
    uname = os.uname() if hasattr(os, "uname") else None
    return {
        "python_version": ".".join(target.version.split(".")[:2]),
        "python_full_version": target.version,
        "sys_platform": sys.platform,
        "platform_system": system(),
        "platform_machine": machine(),
        "platform_release": uname.release if uname else "",
        "platform_version": uname.version if uname else "",
        "os_name": os.name,
        "implementation_name": "pypy" if pypy else "cpython",
        "implementation_version": target.version,
        "platform_python_implementation": "PyPy" if pypy else "CPython",
        "extra": "",
    }


def _declared_by(found: Installation, problems: list[dict[str, str]]) -> Iterator[_Line]:
    try:
        header = read_header(found.metadata)
    except OSError as error:
        what = "has no metadata" if isinstance(error, FileNotFoundError) else "the metadata cannot be read"
        problems.append({"path": _metadata_folder(found), "problem": what})
        return
    lines = requires_dist(header)
    if not lines and not found.metadata.endswith(".dist-info"):
        lines = list(_requires_txt(os.path.join(found.metadata, "requires.txt")))
    for line in lines[: limits.DISTRIBUTION_REQUIREMENTS]:
        yield _Line(found, line)


def requires_dist(header: bytes) -> list[str]:
    """The requirements that a metadata header states and that do not plainly belong to an extra alone."""
    if _FIELD not in header:
        return []
    return [
        text(line[len(_FIELD) :].strip())
        for line in header.split(b"\n")
        if line.startswith(_FIELD) and not _for_an_extra(line)
    ]


def _for_an_extra(line: bytes) -> bool:
    """The marker cannot hold without an extra: ``extra == "…"`` joined to the rest by ``and`` alone."""
    if b"extra" not in line:
        return False
    if _PLAIN_EXTRA.match(line):
        return True
    marker = line.partition(b";")[2]
    alternatives = re.split(rb"\bor\b", marker)
    flat = len(alternatives) == 1 or not re.search(rb"\)\s*and\b|\band\s*\(", marker)
    return b"@" not in line and flat and all(map(_SOME_EXTRA.search, alternatives))


def _requires_txt(path: str) -> Iterator[str]:
    """An egg's requirements; the sections of extras are left out, those of markers are kept as markers."""
    try:
        with open_bytes(path) as stream:
            lines = text(stream.read(limits.EGG_REQUIREMENTS_BYTES)).splitlines()
    except OSError:
        return
    extra, marker = "", ""
    for line in (line.strip() for line in lines):
        section = _EGG_SECTION.match(line)
        if section:
            extra, marker = section[1], section[2]
        elif line and not line.startswith("#") and not extra:
            yield f"{line}; {marker}" if marker else line


def _unmet(
    lines: list[_Line], inventory: Inventory, markers: Mapping[str, str], problems: list[dict[str, str]]
) -> list[dict[str, object]]:
    installed = {found.name: found.version for found in inventory.installed}
    unmet: dict[tuple[object, ...], dict[str, Any]] = {}
    for line in lines:
        simple = parse(line.requirement)
        if simple is not None and acquits(simple, installed, markers):
            continue
        broken = _broken(line, simple, installed, markers, problems)
        if broken:
            unmet[tuple(broken.values())] = broken
    return sorted(unmet.values(), key=lambda each: (each["distribution"], each["requirement"]))


def _broken(
    line: _Line,
    simple: Requirement | None,
    installed: Mapping[str, str | None],
    markers: Mapping[str, str],
    problems: list[dict[str, str]],
) -> dict[str, Any] | None:
    """The requirement where the environment does not satisfy it; packaging has the last word."""
    stated = line.requirement.partition(";")[0].strip()
    if simple is not None and simple.name not in installed and _surely_applies(simple, markers):
        return _record(line, stated, None)
    from packaging.requirements import Requirement as Full

    try:
        full = Full(line.requirement)
        name = normalised(full.name)
        if full.marker is not None and not evaluate_marker(full.marker, markers):
            return None
        if name not in installed:
            return _record(line, stated, None)
        version = installed[name]
        if version is None or full.specifier.contains(version, prereleases=True):
            return None
    except (ValueError, RecursionError) as error:
        problems.append({"path": _metadata_folder(line.owner), "problem": _parse_error(line.requirement, error)})
        return None
    return _record(line, stated, version)


def _surely_applies(simple: Requirement, markers: Mapping[str, str]) -> bool:
    return simple.understood and (not simple.marker or marker_value(simple.marker, markers) is True)


def _record(line: _Line, requirement: str, installed: str | None) -> dict[str, Any]:
    return {
        "distribution": line.owner.name,
        "version": line.owner.version,
        "requirement": requirement,
        "installed": installed,
    }


def _parse_error(requirement: str, error: Exception) -> str:
    return excerpt(f"requirement {requirement!r} is not valid: {str(error).splitlines()[0]}", 200)


def _metadata_folder(found: Installation) -> str:
    return os.path.relpath(found.metadata, found.folder)
