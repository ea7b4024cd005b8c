"""``pyproject.toml``: the user's own with exact versions in place, and a dependency group for what they bring along."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compatcheck._reading import marked_text
from compatcheck._requirement import normalised
from compatcheck.advice import _arrays
from compatcheck.advice._marks import OWN, behind, brought, marks, own_part, via
from compatcheck.advice._requirement_text import with_version
from compatcheck.advice.formats.requirements import solved
from compatcheck.advice.model import Line, Move, Solution, Wanted

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_OWN_NOTES = re.compile(rf"\A(?:{OWN}.*\n)+")
_INDENT = re.compile(r"\n([ \t]+)\S")


def render(
    wanted: Wanted, solution: Solution, moves: Mapping[str, Move], locked: str | None, previous: str | None
) -> str:
    """The project file that is replaced, else the one that was read, else a fragment.

    What was asked for elsewhere is added to the project's dependencies; a link or an option has no place there.
    """
    said = marks(wanted, solution, moves, previous)
    document = _arrays.parse(_base(wanted, previous), "pyproject.toml")
    own = {line.text: line for line in wanted.lines if line.name and not brought(line)}
    counted = _arrays.counted(document)
    named: set[str] = set()
    for keys in counted:
        items, tail, indent = _items(document, keys)
        items = [_item(item, own, solution.versions, said) for item in items]
        named |= {normalised(found[0]) for item in items if item.value and (found := _NAME.match(item.value))}
        _put(document, keys, items, tail, indent)
    missing = [line for line in own.values() if line.name not in named and _NAME.match(line.text)]
    if missing or not counted:
        items, tail, indent = _items(document, ("project", "dependencies"))
        spelled = (_arrays.Item(_arrays.quoted(line.text), line.text, line.comment, line=1) for line in missing)
        added = [_item(item, own, solution.versions, said) for item in spelled]
        _put(document, ("project", "dependencies"), [*items, *added], tail, indent)
    asked = {line.name for line in own.values() if line.asked is not None}
    along = [
        _arrays.Item(
            f'"{name}=={version}"', None, behind(via(solution.parents.get(name, ())), said.get(name, "")), line=1
        )
        for name, version in sorted(solution.versions.items())
        if name not in asked
    ]
    if along or _arrays.at(document, "dependency-groups", _arrays.GROUP) is not None:
        _put(document, ("dependency-groups", _arrays.GROUP), along, (), "    ")
    return document.as_string()


def _base(wanted: Wanted, previous: str | None) -> str:
    """What is edited; line ends as on Unix, as in every text of ours."""
    files = (line.at.file for line in wanted.lines if line.at and line.at.file.endswith(".toml"))
    read = next(files, None)
    text = previous if previous is not None else marked_text(read) if read and os.path.isfile(read) else ""
    return _OWN_NOTES.sub("", text.replace("\r\n", "\n"))


def _items(document: TOMLDocument, keys: tuple[str, ...]) -> tuple[list[_arrays.Item], tuple[str, ...], str]:
    array = _arrays.at(document, *keys)
    if array is None:
        return [], (), "    "
    source = array.as_string()
    indent = _INDENT.search(source)
    return *_arrays.items(source, array), indent[1] if indent else "    "


def _item(
    item: _arrays.Item, own: Mapping[str, Line], versions: Mapping[str, str], said: Mapping[str, str]
) -> _arrays.Item:
    line = own.get(item.value or "")
    version = solved(line, versions) if line else None
    if line is None or version is None:
        return item
    text = with_version(line.text, version)
    spelled = item.spelled if text == item.value else _arrays.quoted(text, item.spelled)
    return item._replace(
        spelled=spelled, value=text, comment=behind(own_part(item.comment), said.get(line.name or "", ""))
    )


def _put(
    document: TOMLDocument, keys: tuple[str, ...], items: list[_arrays.Item], tail: tuple[str, ...], indent: str
) -> None:
    """Only what differs is written anew."""
    import tomlkit

    text = _arrays.spelled(items, tail, indent)
    table: Any = document
    for key in keys[:-1]:
        table = table.setdefault(key, tomlkit.table())
    old = table.get(keys[-1])
    if old is None or _arrays.spelled(*_items(document, keys)) != text:
        table[keys[-1]] = tomlkit.parse(f"array = {text}\n")["array"]
