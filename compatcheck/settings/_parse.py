"""Parse ``[tool.compatcheck]``, once; after that its values are trusted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple, NoReturn

from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.results.areas import AreaName, require_areas
from compatcheck.settings._model import NONE, Ignore, Settings

_FAIL_ON = ("confirmed", "affected", "possible", "never")
_KEYS = ("assume", "baseline", "fail-on", "ignore", "paths", "probe", "require", "select")
_IGNORE_KEYS = ("id", "reason", "until", "paths")
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")
_EXAMPLE = '{ id = "CC-2024-0001", reason = "batch size is 1", until = 2027-01-31 }'


class _Table(NamedTuple):
    """A table and the file it stands in, for telling where something is wrong."""

    path: str
    text: str
    value: Mapping[str, Any]


def settings(path: str, text: str) -> Settings:
    """The settings in the text of a project file, none where it has no such table.

    Raises `InputError` where it, or what it holds of ours, is wrong.
    """
    table = _table(path, text)
    return _settings(table) if table else NONE


def _table(path: str, text: str) -> _Table | None:
    from compatcheck.files.toml_text import TOMLDecodeError, parse_toml

    try:
        document = parse_toml(text)
    except TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else text.rstrip().count("\n") + 1
        seen = _PLACE.sub("", str(error))
        raise InputError("reading TOML from", f"{path}:{line}", f"{seen[:1].lower()}{seen[1:]}", "correct it") from None
    except RecursionError:
        raise InputError(
            "reading TOML from", path, "the content is nested too deeply", "pass an ordinary file"
        ) from None
    tool = document.get("tool")
    if not isinstance(tool, dict) or "compatcheck" not in tool:
        return None
    table = _Table(path, text, {})
    value = tool["compatcheck"]
    if not isinstance(value, dict):
        _refuse(table, "compatcheck", "tool.compatcheck is not a table", "write [tool.compatcheck] and its keys below")
    return table._replace(value=value)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _settings(table: _Table) -> Settings:
    for key in table.value:
        if key not in _KEYS:
            _refuse(table, key, f"there is no setting {key}", f"settings are {_quoted(_KEYS)}")
    fail_on = table.value.get("fail-on")
    if fail_on is not None and fail_on not in _FAIL_ON:
        _refuse(table, "fail-on", f"fail-on is {_shorten(fail_on)}", f"use one of {', '.join(_FAIL_ON)}")
    baseline = table.value.get("baseline")
    if baseline is not None and not _is_text(baseline):
        _refuse(table, "baseline", f"baseline is {_shorten(baseline)}", "pass the path of an earlier JSON report")
    probe = table.value.get("probe")
    if probe is not None and not isinstance(probe, bool):
        _refuse(table, "probe", f"probe is {_shorten(probe)}", "use true or false")
    assumed = _text_list(table, "assume", "facts, such as gpu.compute_capability=9.0")
    if assumed:
        _require_facts(table, assumed)
    folder = os.path.dirname(table.path)
    return Settings(
        table.path,
        fail_on,
        _text_list(table, "select", "ids, such as CC-2024-0001"),
        _ignores(table),
        os.path.join(folder, baseline) if baseline else None,
        assumed,
        tuple(os.path.normpath(os.path.join(folder, path)) for path in _text_list(table, "paths", "files or folders")),
        probe,
        _required(table),
    )


def _required(table: _Table) -> tuple[AreaName, ...]:
    try:
        return require_areas(_text_list(table, "require", "areas, such as packages"))
    except InputError as error:
        _refuse(table, "require", f"require holds {error.subject}: {error.seen}", error.advice)


def _require_facts(table: _Table, assumed: tuple[str, ...]) -> None:
    from compatcheck.environment import Environment
    from compatcheck.environment.assumptions import assume

    for statement in assumed:
        try:
            assume(Environment({}), statement)
        except InputError as error:
            _refuse(table, "assume", f"assume holds {statement}: {error.seen}", "see compatcheck env")


def _ignores(table: _Table) -> tuple[Ignore, ...]:
    values = table.value.get("ignore", [])
    if not isinstance(values, list):
        _refuse(table, "ignore", f"ignore is {_shorten(values)}", f"use a list of tables, such as [{_EXAMPLE}]")
    found, after = [], 0
    for value in values:
        named = str(value.get("id")) if isinstance(value, dict) else ""
        place = re.compile(rf"""["']{re.escape(named)}["']""").search(table.text, after)
        after = place.end() if place else after
        line = table.text.count("\n", 0, place.start()) + 1 if place else _line(table, "ignore")
        found.append(_ignore(value, Location(table.path, line)))
    return tuple(found)


def _ignore(value: object, at: Location) -> Ignore:
    def refuse(seen: str, advice: str) -> NoReturn:
        raise InputError("reading settings from", str(at), seen, advice)

    if not isinstance(value, dict):
        refuse(f"an ignore is {_shorten(value)}", f"use a table, such as {_EXAMPLE}")
    name = value["id"] if _is_text(value.get("id")) else "an entry"
    for key in value:
        if key not in _IGNORE_KEYS:
            refuse(
                f"the ignore table for {name} has an unknown key {key}", f"the valid keys are {_quoted(_IGNORE_KEYS)}"
            )
    for key, what in (("id", "the entry's id"), ("reason", "a reason in a few words")):
        if not _is_text(value.get(key)):
            seen = f"is {_shorten(value[key])}" if key in value else "is missing"
            refuse(f"in the ignore table for {name}, {key} {seen}", f"use {what}, such as {_EXAMPLE}")
    paths = value.get("paths", [])
    if not isinstance(paths, list) or not all(map(_is_text, paths)):
        refuse(
            f"in the ignore table for {name}, paths is {_shorten(paths)}",
            'use a list of patterns, such as ["configs/*.yaml"]',
        )
    if "until" not in value:
        refuse(f"the ignore table for {name} has no until", f"add the last day of the ignore, such as {_EXAMPLE}")
    until = day(value["until"])
    if until is None:
        refuse(f"in the ignore table for {name}, until is {_shorten(value['until'])}", "use a date such as 2027-01-31")
    return Ignore(value["id"].upper(), " ".join(value["reason"].split()), until, tuple(paths), at)


def day(value: object) -> date | None:
    """The day that a value of TOML, or a text, names."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value) if isinstance(value, str) and len(value) == 10 else None
    except ValueError:
        return None


def _text_list(table: _Table, key: str, what: str) -> tuple[str, ...]:
    value = table.value.get(key, [])
    if not isinstance(value, list) or not all(map(_is_text, value)):
        _refuse(table, key, f"{key} is {_shorten(value)}", f"use a list of {what}")
    return tuple(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _shorten(value: object) -> str:
    said = repr(value) if not isinstance(value, date) else value.isoformat()
    return said if len(said) <= 60 else f"{said[:57]}..."


def _refuse(table: _Table, key: str, seen: str, advice: str) -> NoReturn:
    raise InputError("reading settings from", str(Location(table.path, _line(table, key))), seen, advice)


def _line(table: _Table, key: str) -> int | None:
    """The line that gives the key, below the head of the table where that is told apart."""
    head = re.search(r"^[ \t]*\[+\s*tool\s*\.\s*compatcheck\b", table.text, re.M)
    found = re.compile(rf"""^[ \t]*(?:\[+[\w .]*\.\s*)?["']?{re.escape(key)}["']?\s*[=\].]""", re.M).search(
        table.text, head.start() if head else 0
    )
    return table.text.count("\n", 0, found.end()) + 1 if found else None
