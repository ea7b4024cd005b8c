"""``pyproject.toml``: the user's own with exact versions in place, and a dependency group for what they bring along."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from compatcheck.advice import _arrays
from compatcheck.advice._credentials import without_credentials
from compatcheck.advice._marks import OWN, behind, brought, marks, own_part, via
from compatcheck.advice.formats.requirements import solved
from compatcheck.advice.model import Line, Move, Solution, Wanted
from compatcheck.advice.requirement_text import with_version
from compatcheck.files.reading import marked_text
from compatcheck.packages.names import normalised

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_OWN_NOTES = re.compile(rf"\A(?:{OWN}.*\n)+")
_SECRET = re.compile(r"(?i)passw|token|secret|credential|(?:api|private|access)[-_]?key")
_NO_TOOLS = ("project", "build-system", "dependency-groups")
_REFERENCE = re.compile(r"\$\{?\w+\}?")
_INDENT = re.compile(r"\n([ \t]+)\S")


def render(
    wanted: Wanted, solution: Solution, moves: Mapping[str, Move], locked: str | None, previous: str | None
) -> str:
    """The project file that is replaced, else the one that was read, else a new project.

    What was asked for elsewhere is added to the project's dependencies; a link or an option has no place there. A new
    project has a name and a version, as uv takes none without. What may be a secret stays in the file it is in.
    """
    said = marks(wanted, solution, moves, previous)
    document = _arrays.parse(_base(wanted, previous), "pyproject.toml")
    for table, path in _secrets(document) if previous is None else ():
        del table[path[-1]]
    own = {line.text: line for line in wanted.lines if line.name and not brought(line)}
    counted = _arrays.active_arrays(document)
    named: set[str] = set()
    for keys in counted:
        items, tail, indent = _items(document, keys)
        items = [_item(item, own, solution.versions, said) for item in items]
        named |= {normalised(found[0]) for item in items if item.value and (found := _NAME.match(item.value))}
        _put(document, keys, items, tail, indent)
    missing = [line for line in own.values() if line.name not in named and _NAME.match(line.text)]
    if missing or not counted:
        document.setdefault("project", {"name": "project", "version": "0"})
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


def left_out(wanted: Wanted, previous: str | None, text: str) -> Iterator[str]:
    """The secrets of other tables that a new file lacks, and the requirements in the text that nobody looked at."""
    base = _arrays.parse(_base(wanted, previous), "pyproject.toml") if previous is None else {}
    for _, path in _secrets(base):
        yield f"{'.'.join(path)} is left out, as it may be a secret"
    asked = {line.text for line in wanted.lines}
    for path, value in _strings(base):
        if value not in asked and without_credentials(value) != value:
            yield f"{'.'.join(path)}: its credentials are omitted, keep them in a .netrc file or a keyring"
    for path in _arrays.inactive_arrays(_arrays.parse(text, "pyproject.toml")):
        yield f"{'.'.join(path)} is neither resolved nor checked for known faults"


def _secrets(document: object) -> list[tuple[Any, tuple[str, ...]]]:
    """The tables of tools that hold a value whose key calls it secret, with the path of that key."""
    found = []
    for path, value in _strings(document):
        named = _SECRET.search(path[-1]) and path[0] not in _NO_TOOLS
        if named and not _REFERENCE.fullmatch(value):
            found.append((_at(document, path[:-1]), path))
    return found


def _at(value: Any, path: tuple[str, ...]) -> object:
    for key in path:
        value = value[int(key) if isinstance(value, list) else key]
    return value


def _strings(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in a document with its path; of an array the number counts as a key."""
    if isinstance(value, str):
        yield path, str(value)
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _strings(each, (*path, str(key)))


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

    text = _arrays.spell_array(items, tail, indent)
    table: Any = document
    for key in keys[:-1]:
        table = table.setdefault(key, tomlkit.table())
    old = table.get(keys[-1])
    if old is None or _arrays.spell_array(*_items(document, keys)) != text:
        table[keys[-1]] = tomlkit.parse(f"array = {text}\n")["array"]
