"""``pyproject.toml``: what a project asks for, in the words of PEP 621, PEP 735, Poetry, uv or pixi.

Optional dependencies count only where the project names its own extra. Of the groups uv's default ones count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_bytes
from compatcheck.packages.names import normalised
from compatcheck.project.requirements._asked import (
    Asked,
    facts_of,
    label_of_index,
    parse,
    requests,
    wheel_at,
    with_label,
)
from compatcheck.project.requirements._constraint import specifier_of
from compatcheck.project.requirements._markers import Place, admits, applies, only_minor
from compatcheck.project.requirements._toml import Sheet, read_toml, table, text, texts
from compatcheck.project.requirements.formats.pixi_toml import facts_of_manifest

TITLE = "a pyproject.toml with dependencies"
_STATED = re.compile(rb"^(?:dependencies\s*=|\[dependency-groups\]|\[tool\.(?:poetry\.dependencies|pixi))", re.M)
_LOOSENING = ("override-dependencies", "exclude-dependencies", "dependency-metadata", "sources")
"""Settings of uv by which a package's own requirements do not bind."""
_LOCATIONS = ("git", "path", "url", "file", "workspace")


def recognises(path: str) -> bool:
    """A file that states dependencies; every project has one that may not."""
    if os.path.basename(path) != "pyproject.toml":
        return False
    try:
        with open_bytes(path) as stream:
            return _STATED.search(stream.read(limits.TEXT_BYTES)) is not None
    except OSError:
        return False


def read(path: str, python: str | None = None) -> Environment:
    """``distributions`` and ``distribution_ranges`` that the project asks for; none where it states no dependencies.

    Raises `InputError` where it is not TOML or holds what is no requirement.
    """
    sheet = read_toml(path)
    project, tool = table(sheet.value.get("project")), table(sheet.value.get("tool"))
    poetry_tool, uv = table(tool.get("poetry")), table(tool.get("uv"))
    poetry = table(poetry_tool.get("dependencies"))
    requires = text(project.get("requires-python")) or _python_of(poetry)
    place = Place(python, requires)
    asked = [
        *_project_requirements(project, sheet, place),
        *_group_requirements(sheet, uv, place),
        *_poetry_requirements(poetry, sheet, place),
    ]
    overrides = {each.name: each for each in _requirements(texts(uv.get("override-dependencies")), sheet, place)}
    elsewhere = any(each.get(key) for each, key in ((uv, "index"), (uv, "sources"), (poetry_tool, "source")))
    chosen = [
        with_label(each, _label(each.name, uv))._replace(elsewhere=elsewhere or each.elsewhere)
        for each in (overrides.get(e.name, e) for e in asked)
    ]
    constraints = list(_requirements(texts(uv.get("constraint-dependencies")), sheet, place))
    together = not any(uv.get(key) for key in _LOOSENING)
    listed = requests(path, chosen, constraints, resolved_together=together)
    stated = facts_of(chosen, constraints)
    stated = stated.with_fact("requirements", listed) if listed else stated
    minor = only_minor(requires)
    stated = stated.with_fact("python", minor, sheet.at("requires-python", "python")) if minor else stated
    pixi = table(tool.get("pixi"))
    if not pixi:
        return stated
    return stated.overlay(facts_of_manifest(sheet, pixi))


def _requirements(lines: list[str], sheet: Sheet, place: Place) -> Iterator[Asked]:
    for line in lines:
        name = re.match(r"[\w.-]*", line)
        at = sheet.at(line, name[0] if name else line)
        try:
            found = parse(line, at, place)
        except ValueError as error:
            seen = f"line {at.line}: {error}"
            raise InputError("reading requirements from", sheet.path, seen, "write name==version") from None
        if found is not None:
            yield found


def _project_requirements(project: Mapping[str, object], sheet: Sheet, place: Place) -> Iterator[Asked]:
    own = normalised(text(project.get("name")))
    optional = {normalised(name): texts(lines) for name, lines in table(project.get("optional-dependencies")).items()}
    waiting = texts(project.get("dependencies"))
    counted: set[str] = set()
    while waiting:
        line, *waiting = waiting
        named = re.match(r"\s*([\w.-]+)\s*\[([^\]]*)\]", line)
        if named and normalised(named[1]) == own:
            fresh = {normalised(each.strip()) for each in named[2].split(",")} - counted
            counted |= fresh
            waiting += [each for extra in sorted(fresh) for each in optional.get(extra, ())]
        else:
            yield from _requirements([line], sheet, place)


def _group_requirements(sheet: Sheet, uv: Mapping[str, object], place: Place) -> Iterator[Asked]:
    groups = {normalised(name): lines for name, lines in table(sheet.value.get("dependency-groups")).items()}
    chosen = uv.get("default-groups", ["dev"])
    waiting = list(groups) if chosen == "all" else [normalised(name) for name in texts(chosen)]
    counted: set[str] = set()
    while waiting:
        name, *waiting = waiting
        lines = groups.get(name)
        if name in counted or not isinstance(lines, list):
            continue
        counted.add(name)
        waiting += [normalised(text(table(each).get("include-group"))) for each in lines if isinstance(each, Mapping)]
        yield from _requirements(texts(lines), sheet, place)


def _poetry_requirements(poetry: Mapping[str, object], sheet: Sheet, place: Place) -> Iterator[Asked]:
    """https://python-poetry.org/docs/dependency-specification/"""
    for name, given in poetry.items():
        if normalised(name) == "python":
            continue
        for each in given if isinstance(given, list) else [given]:
            stated = table(each)
            if stated.get("optional") is True:
                continue
            marker = text(stated.get("markers"))
            pythons = specifier_of(text(stated.get("python")))
            holds = [applies(marker, place), admits(pythons, place) if pythons else True]
            if False in holds:
                continue
            located = next((key for key in _LOCATIONS if key in stated), None)
            version = text(each) or text(stated.get("version"))
            wheel = wheel_at(text(stated.get("url")).partition("#")[0])
            specifier = f"=={wheel[1]}" if wheel else None if located else specifier_of(version)
            source = f"its {located}" if located else f"what {version} selects"
            condition = "" if all(holds) else marker or f"Python is {pythons}"
            yield Asked(normalised(name), specifier, sheet.at(name), source, condition)


def _python_of(poetry: Mapping[str, object]) -> str:
    return specifier_of(text(poetry.get("python"))) or ""


def _label(name: str, uv: Mapping[str, object]) -> str | None:
    """The local label of PyTorch's own index, where uv is told to take a package from there."""
    indexes = uv.get("index")
    urls = {
        text(each.get("name")): text(each.get("url"))
        for each in (indexes if isinstance(indexes, list) else ())
        if isinstance(each, Mapping)
    }
    given = table(uv.get("sources")).get(name)
    return label_of_index(urls.get(text(table(given).get("index")), ""))
