"""``pyproject.toml``: the project's dependencies and those of the groups that uv installs by default.

Optional dependencies count where the project names its own extra. Poetry's tables are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.advice import _arrays, _marks
from compatcheck.advice.model import Line
from compatcheck.advice.requirement_text import pins as pins_of
from compatcheck.advice.wanted._lines import DOING, Read, absolute, requirement
from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.files.reading import marked_text
from compatcheck.packages.names import normalised

_SOURCES = ("git", "url", "path", "workspace")


def read(path: str, markers: Mapping[str, str] | None) -> Iterator[Read]:
    """Every requirement in its place. Raises `InputError` where the file states none, or leaves them to a build."""
    text = marked_text(path)
    document = _arrays.parse(text, path)
    counted = _arrays.active_arrays(document)
    if not counted:
        raise InputError(DOING, path, *_why_nothing(document))
    stated = _arrays.at(document, "tool", "uv", "sources")
    sources = {normalised(name): each for name, each in (stated if isinstance(stated, Mapping) else {}).items()}
    for keys in counted:
        for value, comment, at in _line_with_source(document, keys, text, path):
            if not _arrays.own_extras(document, value):
                line = requirement(value, comment, at, markers)
                yield Read(_local_source(line, sources.get(line.name or ""), path))
    for value, comment, at in _line_with_source(document, ("dependency-groups", _arrays.GROUP), text, path):
        along = comment if comment.startswith("# via ") else _marks.via(())
        yield Read(requirement(value, along, at, markers)._replace(asked=None))
    for value, comment, at in _line_with_source(document, ("tool", "uv", "constraint-dependencies"), text, path):
        yield Read(requirement(value, comment, at, markers), constraint=True, firm=True)


def pins(path: str) -> dict[str, str]:
    """The exact pins of the arrays that count, or of a lock (PEP 751), by name. Raises `InputError` for broken TOML."""
    document = _arrays.parse(marked_text(path), path)
    packages = _arrays.at(document, "packages")
    if "lock-version" in document and isinstance(packages, list):
        stated = ((_arrays.at(each, "name"), _arrays.at(each, "version")) for each in packages)
        return {normalised(str(name)): str(version) for name, version in stated if name and version}
    arrays = (*_arrays.active_arrays(document), ("dependency-groups", _arrays.GROUP))
    return pins_of(text for keys in arrays for text in _arrays.array_at(document, keys) if isinstance(text, str))


def _line_with_source(
    document: Mapping[str, object], keys: tuple[str, ...], text: str, path: str
) -> Iterator[tuple[str, str, Location]]:
    """The strings of an array with their comments and lines."""
    array = _arrays.at(document, *keys)
    if not isinstance(array, list):
        return
    source = array.as_string() if hasattr(array, "as_string") else ""
    first = text.count("\n", 0, max(text.find(source), 0)) + 1
    for item in _arrays.items(source, array)[0]:
        if item.value is not None:
            yield str(item.value), item.comment, Location(path, first + item.line)


def _local_source(line: Line, given: Any, path: str) -> Line:
    """The line with the place that uv is told to take it from, in the words of a requirement (PEP 508)."""
    source = next((each for each in (given if isinstance(given, list) else [given]) if _is_place(each)), None)
    if line.asked is None or source is None:
        return line
    place = _place(source, path)
    shape = re.match(r"([\w.-]+(?:\s*\[[^\]]*\])?)[^;]*(;.*)?", line.asked)
    asked = f"{shape[1]} @ {place} {shape[2] or ''}".strip() if shape and place else None
    return line._replace(text=asked or line.text, asked=asked, kept=f"a uv {_kind(source)} source")


def _is_place(source: object) -> bool:
    return isinstance(source, Mapping) and any(key in source for key in _SOURCES)


def _kind(source: Mapping[str, Any]) -> str:
    return next(key for key in _SOURCES if key in source)


def _place(source: Mapping[str, object], file: str) -> str | None:
    """What uv takes in the place of a version; None for a member of the workspace, which no resolver finds outside it.

    See https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources.
    """
    from pathlib import Path

    within = f"#subdirectory={source['subdirectory']}" if "subdirectory" in source else ""
    if "git" in source:
        revision = next((source[key] for key in ("rev", "tag", "branch") if key in source), None)
        return f"git+{source['git']}" + (f"@{revision}" if revision else "") + within
    if "url" in source:
        return f"{source['url']}{within}"
    return Path(absolute(str(source["path"]), file)).as_uri() if "path" in source else None


def _why_nothing(document: Mapping[str, object]) -> tuple[str, str]:
    if "dependencies" in _arrays.array_at(document, ("project", "dynamic")):
        return "the dependencies are dynamic", "pass the file that lists the dependencies"
    if _arrays.at(document, "tool", "poetry", "dependencies"):
        return (
            "the dependencies are in Poetry's own format",
            "pass the output of `poetry export`, or use [project] dependencies",
        )
    return "the file has no list of [project] dependencies", "add the dependencies, or pass a requirements file"
