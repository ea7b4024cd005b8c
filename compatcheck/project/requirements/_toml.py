"""TOML files of package managers, with the line on which each of their packages begins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import OversizeError, read_text
from compatcheck.files.toml_text import TOMLDecodeError, parse_toml

_DOING = "reading TOML from"
_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")


class Sheet(NamedTuple):
    """A file and what it says; ``lines`` are those of its packages, in their order, where these can be told."""

    path: str
    text: str
    value: Mapping[str, Any]

    def at(self, *words: str) -> Location:
        """The line that gives the first of the words as a key or a name, or the file where none does."""
        for word in words:
            found = re.search(rf"""^[ \t]*["']?(?:{re.escape(word)})["']?\s*[=\[<>!~;@.]""", self.text, re.M)
            found = found or re.search(rf"""["']{re.escape(word)}(?![\w-])""", self.text, re.I)
            if found:
                return Location(self.path, self.text.count("\n", 0, found.end()) + 1)
        return Location(self.path)


class Package(NamedTuple):
    """One package of a lock and where it begins."""

    value: Mapping[str, Any]
    at: Location

    @property
    def name(self) -> str:
        return str(self.value["name"])


def read_toml(path: str) -> Sheet:
    """The file parsed. Raises `InputError` with the line where it is not TOML."""
    text = read_text(path, limits.TEXT_BYTES)
    try:
        return Sheet(path, text, parse_toml(text))
    except TOMLDecodeError as error:
        raise InputError(_DOING, path, *_parse_fault(str(error), text)) from None
    except RecursionError:
        raise OversizeError(_DOING, path, "the content is nested too deeply", "pass an ordinary file") from None


def _parse_fault(message: str, text: str) -> tuple[str, str]:
    found = _PLACE.search(message)
    last = len(text.rstrip().splitlines())
    line = int(found[1]) if found and found[1] else last
    what = _PLACE.sub("", message).strip()
    cut = line >= last
    return (
        f"line {line}: {what[:1].lower()}{what[1:]}"
        + ("; the file appears to be truncated at this line" if cut else ""),
        "regenerate it with the tool that created it" if cut else "correct it there",
    )


def packages(sheet: Sheet, key: str) -> list[Package]:
    """The tables of an array such as ``[[package]]`` that have a name. Raises `InputError` where it is no array."""
    found = sheet.value.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise InputError("reading", sheet.path, f"{key} is not a list of tables", "regenerate it")
    heads = [match.start() for match in re.finditer(rf"^\[\[{key}\]\]", sheet.text, re.M)]
    lines: list[int | None] = [None] * len(found)
    if len(heads) == len(found):
        counted, before = 1, 0
        for number, head in enumerate(heads):
            counted, before = counted + sheet.text.count("\n", before, head), head
            lines[number] = counted
    named = [(each, line) for each, line in zip(found, lines) if isinstance(each.get("name"), str)]
    if len(named) < len(found):
        line = next((line for each, line in zip(found, lines) if not isinstance(each.get("name"), str)), None)
        where = f"line {line}: " if line else ""
        raise InputError("reading", sheet.path, f"{where}a package has no name", "regenerate it; it appears truncated")
    return [Package(each, Location(sheet.path, line)) for each, line in named]


def table(value: object) -> Mapping[str, object]:
    """The value where it is a table, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def texts(value: object) -> list[str]:
    """The strings of a list, or none."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def text(value: object) -> str:
    """The value where it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
