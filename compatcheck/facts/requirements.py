"""The pins of a requirements file; a range is no version and leaves the distribution unknown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from compatcheck._requirement import normalised
from compatcheck.errors import InputError
from compatcheck.facts._text import read_text
from compatcheck.model import Facts, Location

_DEEPEST = 10
_LARGEST = 4 << 20
_INCLUDE = re.compile(r"(?:-r|--requirement)(?:\s+|=)?(.+)\Z")
_OPTION_BEHIND = re.compile(r"\s--[a-z][a-z-]*[=\s].*\Z")
_NAMED_URL = re.compile(r"[/\\#&]egg=([A-Za-z0-9._-]+)")


def read(path: str) -> Facts:
    """``distributions`` of a requirements file and of those it includes; the list is not complete.

    Raises `InputError` where the file cannot be read or a line is no requirement.
    """
    versions: dict[str, str] = {}
    reasons: dict[str, str] = {}
    locations: dict[str, Location] = {}
    for place, line in _lines(path, ()):
        name, version, reason = _judged(line, place)
        if not name or name in versions:
            continue
        locations[name] = place
        if version is None:
            reasons[name] = f"{os.path.basename(place.file)} {reason}"
        else:
            versions[name] = version
            reasons.pop(name, None)
    return Facts(
        {"distributions": versions, "distributions_complete": False},
        {f"distributions.{name}": why for name, why in reasons.items()},
        {f"distributions.{name}": place for name, place in locations.items()},
    )


def _lines(path: str, including: tuple[str, ...]) -> Iterator[tuple[Location, str]]:
    """Each requirement with its place; continuations joined, comments and options dropped."""
    if len(including) >= _DEEPEST or os.path.realpath(path) in including:
        seen = "its includes go round in a circle" if len(including) < _DEEPEST else "its includes go too deep"
        raise InputError("reading requirements from", path, seen, "break the chain of -r lines")
    for number, line in _logical_lines(read_text(path, _LARGEST)):
        include = _INCLUDE.match(line)
        if include:
            inner = os.path.join(os.path.dirname(path), include[1].strip().strip("'\""))
            if "://" not in include[1]:
                yield from _lines(inner, (*including, os.path.realpath(path)))
        elif line.startswith(("-e", "--editable")) or not line.startswith("-"):
            yield Location(path, number), line


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    kept, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        start = start or number
        line = re.sub(r"(^|\s)#.*\Z", "", raw)
        if line.endswith("\\"):
            kept += line[:-1] + " "
            continue
        whole = (kept + line).strip()
        if whole:
            yield start, whole
        kept, start = "", 0
    if kept.strip():
        yield start, kept.strip()


def _judged(line: str, place: Location) -> tuple[str, str | None, str]:
    """Name, version and, where there is no one version, why; no name where the line does not apply."""
    from packaging.requirements import InvalidRequirement, Requirement

    bare = _OPTION_BEHIND.sub("", line).strip()
    if bare.startswith(("-e", "--editable")) or _is_location(bare):
        named = _NAMED_URL.search(bare)
        return (normalised(named[1]) if named else "", None, "installs it from a location")
    try:
        requirement = Requirement(bare)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            return "", None, ""
    except InvalidRequirement as error:
        seen = f"line {place.line}: {str(error).splitlines()[0]}"
        raise InputError("reading requirements from", place.file, seen, "write name==version") from None
    name = normalised(requirement.name)
    if requirement.url:
        return name, None, f"installs it from {requirement.url}"
    clauses = list(requirement.specifier)
    pins = [each.version for each in clauses if each.operator in ("==", "===") and not each.version.endswith(".*")]
    if len(pins) == 1:
        return name, pins[0], ""
    asked = f"asks for {requirement.specifier}" if clauses else "gives no version"
    return name, None, f"{asked}, which is not one version" if clauses else asked


def _is_location(line: str) -> bool:
    """A path, an archive or a URL without a name in front."""
    if " @ " in line:
        return False
    return "://" in line.partition(";")[0] or line.startswith((".", "/")) or line.endswith((".whl", ".tar.gz", ".zip"))
