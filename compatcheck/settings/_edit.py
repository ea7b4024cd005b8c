"""Ignores written into the user's own ``pyproject.toml``, with its comments and its order as they were."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from compatcheck.errors import InputError
from compatcheck.files.reading import read_text
from compatcheck.settings import _find, _parse
from compatcheck.settings._model import Ignore

_HEAD = re.compile(r"^[ \t]*\[", re.M)
_OURS = re.compile(r"[ \t]*\[\[?\s*tool\s*\.\s*compatcheck\b")
_IGNORE = re.compile(r"[ \t]*\[\[\s*tool\s*\.\s*compatcheck\s*\.\s*ignore\s*\]\]")

Edit = Callable[[str, list[int]], str]
"""Gives the text after an edit of the ignores at some places."""


class _Block(NamedTuple):
    start: int
    end: int


class Edited(NamedTuple):
    """The project file to write, its text, and how many ignores were there of the same entry and paths."""

    path: str
    text: str
    same: int


def with_ignore(folder: str, ignore: Ignore) -> Edited:
    """The project file with the ignore, in the place of one of the same entry and paths.

    It is the file whose settings count in the folder, else the nearest project file, else a new one there. Raises
    `InputError` where what it holds is not as it should be, or is spelled so that no edit is safe.
    """
    path = _find.nearest(folder) or os.path.normpath(os.path.join(folder, _find.FILE))
    row: dict[str, Any] = {"id": ignore.id, "reason": ignore.reason, "until": ignore.until}
    if ignore.paths:
        row["paths"] = list(ignore.paths)

    def put(text: str, same: list[int]) -> str:
        import tomlkit

        document = tomlkit.parse(text)
        held = _lookup(document, "tool", "compatcheck", "ignore")
        if same:
            held[same[0]].update(row)
            return document.as_string()
        if isinstance(held, tomlkit.items.Array):
            inline = tomlkit.inline_table()
            inline.update(row)
            held.append(inline)
            return document.as_string()
        return _insert_table(text, row)

    return _edit(path, ignore.id, ignore.paths, (ignore._replace(at=None),), put)


def without_ignore(folder: str, entry: str, paths: tuple[str, ...]) -> Edited:
    """The project file without the ignores of this entry and these paths; ``same`` is 0 where there was none.

    Raises `InputError` as `with_ignore` does, and where there is no project file.
    """
    path = _find.nearest(folder)
    if path is None:
        raise InputError(
            "removing an ignore from",
            _find.FILE,
            "no project file here or above",
            "run this in the folder of the project",
        )

    def drop(text: str, same: list[int]) -> str:
        import tomlkit

        document = tomlkit.parse(text)
        settings = _lookup(document, "tool", "compatcheck") or {}
        if same and isinstance(settings["ignore"], tomlkit.items.Array):
            for index in reversed(same):
                del settings["ignore"][index]
            return document.as_string()
        for block in reversed([block for index, block in enumerate(_blocks(text, _IGNORE)) if index in same]):
            text = text[: block.start] + text[block.end :].removeprefix("\n")
        return text

    return _edit(path, entry, paths, (), drop)


def _edit(
    path: str,
    entry: str,
    paths: tuple[str, ...],
    added: tuple[Ignore, ...],
    edit: Edit,
) -> Edited:
    """The file after an edit of the ignores of one entry and paths, looked at as `check` will look at it."""
    from tomlkit.exceptions import TOMLKitError

    text = read_text(path) if os.path.lexists(path) else ""
    unix = text.replace("\r\n", "\n")
    before = _parse.settings(path, unix)
    same = [index for index, each in enumerate(before.ignores) if (each.id, each.paths) == (entry, paths)]
    kept = [each._replace(at=None) for index, each in enumerate(before.ignores) if index not in same]
    try:
        result = edit(unix, same)
        after = _parse.settings(path, result)
        expected = before._replace(ignores=(), file=path) == after._replace(ignores=(), file=path)
    except (TOMLKitError, InputError):
        expected, after = False, before
    if not expected or sorted([*kept, *added]) != sorted(each._replace(at=None) for each in after.ignores):
        seen = "the table has a form that cannot be edited safely"
        raise InputError("editing", path, seen, "write [[tool.compatcheck.ignore]] with id, reason and until by hand")
    return Edited(path, result.replace("\n", "\r\n") if text != unix else result, len(same))


def _insert_table(text: str, row: dict[str, object]) -> str:
    """With one more table: behind the last of ours, else at the end, set off by empty lines."""
    import tomlkit

    table = tomlkit.table()
    table.update(row)
    ours = _blocks(text, _IGNORE) or _blocks(text, _OURS)
    end = ours[-1].end if ours else len(text)
    head, tail = text[:end], text[end:].removeprefix("\n")
    head = f"{head.rstrip()}\n\n" if head.strip() else ""
    return f"{head}[[tool.compatcheck.ignore]]\n{table.as_string()}" + (f"\n{tail}" if tail else "")


def _blocks(text: str, head: re.Pattern[str]) -> list[_Block]:
    """The tables under such a head, each up to its last key: comments behind that belong to what follows."""
    starts = [each.start() for each in _HEAD.finditer(text)] + [len(text)]
    found = []
    for start, following in zip(starts, starts[1:]):
        if head.match(text, start):
            lines = text[start:following].splitlines(keepends=True)
            while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
                lines.pop()
            found.append(_Block(start, start + len("".join(lines))))
    return found


def _lookup(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
