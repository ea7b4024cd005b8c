"""``uv.lock``: what ``uv sync`` installs for the project and its default group.

The format is described at https://docs.astral.sh/uv/concepts/projects/layout/#the-lockfile and read from its files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.packages.names import normalised
from compatcheck.project.requirements._markers import Place, applies, only_minor
from compatcheck.project.requirements._resolved import Locked, facts_of
from compatcheck.project.requirements._toml import Package, Sheet, packages, read_toml, table, text, texts

TITLE = "a uv.lock"
_OWN = ("virtual", "editable", "directory")
_DEFAULT_GROUPS = ("dev",)


def recognises(path: str) -> bool:
    return os.path.basename(path) == "uv.lock"


def read(path: str, python: str | None = None) -> Environment:
    """The versions that the lock holds for what its own projects depend on.

    Raises `InputError` where it is no lock, or is cut short.
    """
    sheet = read_toml(path)
    if "version" not in sheet.value:
        raise InputError("reading", path, "the file has no format version", "regenerate it with uv lock")
    requires = text(sheet.value.get("requires-python"))
    place = Place(python, requires)
    listed = packages(sheet, "package")
    by_name: dict[str, list[Package]] = {}
    for package in listed:
        by_name.setdefault(normalised(package.name), []).append(package)
    roots = [each for each in listed if set(table(each.value.get("source"))) & set(_OWN)]
    reached = _reached(roots, by_name, place, sheet)
    locked = (
        Locked(each.name, str(each.value.get("version", "")), each.at, *reached[id(each)])
        for each in listed
        if id(each) in reached and each not in roots
    )
    minor = only_minor(requires)
    found = facts_of(locked)
    return found.with_fact("python", minor, sheet.at("requires-python")) if minor else found


def _reached(
    roots: list[Package], by_name: Mapping[str, list[Package]], place: Place, sheet: Sheet
) -> dict[int, tuple[bool | None, str]]:
    """Each package that the projects lead to, and whether it surely applies; an uncertain step makes all beyond so."""
    reached: dict[int, tuple[bool | None, str]] = {}
    waiting = [(root, entry, True, "") for root in roots for entry in _entries(root.value, True, ())]
    seen: set[tuple[int, str, bool | None]] = set()
    while waiting:
        parent, entry, sure, why = waiting.pop()
        marker = text(entry.get("marker"))
        holds = applies(marker, place)
        if holds is False:
            continue
        certain, told = (True, "") if sure and holds else (None, why or marker)
        for package in _meant(entry, parent, by_name, sheet):
            extras = tuple(texts(entry.get("extra")))
            known = reached.get(id(package))
            if known is None or (certain and not known[0]):
                reached[id(package)] = (certain, told)
            key = (id(package), ",".join(extras), certain)
            if key not in seen:
                seen.add(key)
                waiting += [(package, each, bool(certain), told) for each in _entries(package.value, False, extras)]
    return reached


def _entries(package: Mapping[str, object], is_root: bool, extras: tuple[str, ...]) -> Iterator[Mapping[str, object]]:
    lists = [package.get("dependencies")]
    lists += [table(package.get("optional-dependencies")).get(extra) for extra in extras]
    if is_root:
        lists += [table(package.get("dev-dependencies")).get(group) for group in _DEFAULT_GROUPS]
    for each in lists:
        yield from (entry for entry in (each if isinstance(each, list) else ()) if isinstance(entry, Mapping))


def _meant(
    entry: Mapping[str, object], parent: Package, by_name: Mapping[str, list[Package]], sheet: Sheet
) -> list[Package]:
    name = text(entry.get("name"))
    found = [
        each
        for each in by_name.get(normalised(name), ())
        if entry.get("version") in (None, each.value.get("version"))
        and entry.get("source") in (None, each.value.get("source"))
    ]
    if not found:
        seen = f"the file ends at line {len(sheet.text.splitlines())} without {name}, which {parent.name} depends on"
        raise InputError("reading", sheet.path, seen, "the file appears truncated; regenerate it with uv lock")
    return found
