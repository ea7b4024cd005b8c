"""From the authored TOML to the compact form the wheel carries.

``index.json`` holds, for each distribution, the interval of versions in which an entry could apply and where its line
in ``conditions.jsonl`` lies; that holds the conditions and where the whole entry lies in ``entries.jsonl``. So a check
reads the conditions that can matter, and whole only the entries that matched. ``patterns.jsonl`` holds the error
patterns with the ids of their entries, ``translations`` what entries say in other languages. ``ranking.jsonl`` holds a
light row for each line of conditions, and ``postings.json`` the words of all of them. ``about.json`` repeats of the
index what tells one matrix from another, so that two can be compared without reading either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from compatcheck.environment.paths import distribution_of, variable_of
from compatcheck.errors import DataError, InputError
from compatcheck.files.keyed_rows import PACKED, pack
from compatcheck.files.reading import read_text
from compatcheck.files.toml_text import TOMLDecodeError, parse_toml
from compatcheck.matrix._patterns import compile_patterns
from compatcheck.matrix._traits import computed_traits
from compatcheck.matrix.entry import Entry, WithdrawnEntry
from compatcheck.matrix.fetched import ABOUT_KEYS
from compatcheck.matrix.loading import FORMAT
from compatcheck.matrix.rows import compile_rows, parse_posting
from compatcheck.packages.frameworks import Framework
from compatcheck.packages.versions import parse_range, sort_key
from compatcheck.project import trait_names

NOT_ENTRIES = ("frameworks", "interfaces", "links", "records", "tables")
"""Folders of the matrix that hold no entries."""


class Sources(NamedTuple):
    """The entries below a matrix folder, by file: those in force, and those that are withdrawn."""

    entries: dict[Path, Entry]
    withdrawn: dict[Path, WithdrawnEntry]


def read_sources(folder: Path) -> Sources:
    """Every entry below a matrix folder. Raises InputError naming the file and each fault in it."""
    sources = Sources({}, {})
    for path in sorted(path for path in folder.glob("*/*.toml") if path.parent.name not in NOT_ENTRIES):
        entry = read_entry(path)
        if isinstance(entry, WithdrawnEntry):
            sources.withdrawn[path] = entry
        else:
            sources.entries[path] = entry
    return sources


def read_entries(folder: Path) -> dict[Path, Entry]:
    """Every entry in force, by file."""
    return read_sources(folder).entries


def read_entry(path: Path) -> Entry | WithdrawnEntry:
    stated = read_toml(path)
    try:
        return WithdrawnEntry.model_validate(stated) if "withdrawn" in stated else Entry.model_validate(stated)
    except ValidationError as error:
        raise InputError("reading matrix entry", path, _faults(error), "correct the entry") from None


def _faults(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
        for fault in error.errors(include_url=False)
    )


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_text(str(path)))
    except (TOMLDecodeError, RecursionError) as error:
        raise InputError("reading", path, str(error), "correct the file") from None


def read_tables(folder: Path) -> dict[str, dict[str, Any]]:
    """Every table below a matrix folder by its name, the frameworks as one. Raises InputError for a wrong framework."""
    tables = {path.stem: read_toml(path) for path in sorted(folder.glob("tables/*.toml"))}
    return tables | {"frameworks": read_frameworks(folder)}


def read_files(folder: Path) -> dict[str, bytes]:
    """The tables that are written in the form in which they are shipped, by their path in the compiled matrix."""
    paths = sorted((*folder.glob("interfaces/*.tsv"), *folder.glob("links/*.json"), *folder.glob("interfaces/*.json")))
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in paths}


def read_frameworks(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: _read_framework(path) for path in sorted(folder.glob("frameworks/*.toml"))}


def _read_framework(path: Path) -> dict[str, Any]:
    row = read_toml(path)
    if isinstance(row.get("reviewed"), date):
        row["reviewed"] = row["reviewed"].isoformat()
    try:
        TypeAdapter(Framework).validate_python({"name": path.stem, **row})
    except ValidationError as error:
        raise InputError("reading the framework", path, _faults(error), "correct the file") from None
    return row


class Compiled(NamedTuple):
    """The index, the two files of lines that it leads to, and what only a diagnosis reads."""

    summary: dict[str, Any]
    conditions: bytes
    entries: bytes
    patterns: bytes = b""
    ranking: bytes = b""
    postings: bytes = b"{}"


def compile_entries(
    entries: Iterable[Entry],
    tables: Mapping[str, Mapping[str, Any]] | None = None,
    texts: Mapping[str, Mapping[str, str]] | None = None,
    files: Mapping[str, bytes] | None = None,
    withdrawn: Iterable[WithdrawnEntry] = (),
) -> Compiled:
    """The compiled form, whose revision and date are those of the entries and the tables.

    ``texts`` holds by language what the entries say there, ``files`` the tables that are shipped as they are written.
    What proves an entry, its examples, is no part of it.
    Raises DataError where two entries share an id.
    """
    tables = tables or {}
    reviewed = [*tables.values(), *tables.get("frameworks", {}).values()]
    dates = [str(table["reviewed"]) for table in reviewed if "reviewed" in table]
    guards: dict[str, dict[str, list[Any]]] = {}
    unguarded: list[list[int]] = []
    of_model: list[int] = []
    environ: set[str] = set()
    stated: list[bytes] = []
    judged: list[bytes] = []
    at = place_at = 0
    seen: set[str] = set()
    in_force = sorted(entries, key=lambda entry: entry.id)
    every: list[Entry | WithdrawnEntry] = [*in_force, *withdrawn]
    for entry in sorted(every, key=lambda entry: entry.id):
        if entry.id in seen:
            raise DataError("compiling the matrix entry", entry.id, "the id is used twice", "give one of them a new id")
        seen.add(entry.id)
        dates.append(str(entry.withdrawn.on if isinstance(entry, WithdrawnEntry) else entry.reviewed))
        stated.append(_stated(entry).model_dump_json(exclude_defaults=True).encode() + b"\n")
        place, at = [at, len(stated[-1])], at + len(stated[-1])
        if isinstance(entry, WithdrawnEntry):
            continue
        line = _to_json({"affected": entry.affected, "at": place}).encode() + b"\n"
        judged.append(line)
        place = [place_at, len(line)]
        place_at += len(line)
        if all(map(_is_of_model, entry.affected)):
            of_model.append(place[0])
        for conditions in entry.affected:
            environ.update(name for path in conditions if (name := variable_of(path)))
            guard = _guard(conditions)
            if guard is None:
                unguarded.append(place)
            else:
                name, low, high = guard
                row = guards.setdefault(name, {}).setdefault(_to_json([low, high]), [low, high])
                row.append(place)
    index = {
        "format": FORMAT,
        "revision": hashlib.sha256(b"".join([*stated, _to_json(tables).encode(), *(files or {}).values()])).hexdigest()[
            :12
        ],
        "entries": len(in_force),
        "date": max(dates, default="1970-01-01"),
        "environ": sorted(environ),
        "guards": {name: list(rows.values()) for name, rows in guards.items()},
        "unguarded": unguarded,
        "of_model": of_model,
        "tables": sorted(tables),
    }
    rows, postings = compile_rows(in_force, texts or {})
    patterns = compile_patterns(in_force, {word: len(parse_posting(found)) for word, found in postings.items()})
    return Compiled(
        index, b"".join(judged), b"".join(stated), _lines(patterns), _lines(rows), _to_json(postings).encode()
    )


def _stated(entry: Entry | WithdrawnEntry) -> Entry | WithdrawnEntry:
    """What the compiled form holds of an entry: who is at fault stands in it, its examples do not."""
    if isinstance(entry, WithdrawnEntry):
        return entry
    return entry.model_copy(update={"packages": list(entry.distributions), "examples": []})


def _lines(values: Iterable[object]) -> bytes:
    return b"".join(_to_json(value).encode() + b"\n" for value in values)


def _is_of_model(conditions: Mapping[str, Any]) -> bool:
    """Whether a table speaks of a model's own type or traits alone: where no model is known it is never told."""
    traits = conditions.get("traits", ())
    about = any(path.startswith("model.") for path in conditions)
    return (about or bool(traits)) and not set(traits) & (computed_traits() | trait_names.from_trainers())


def _guard(conditions: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """The table's narrowest demand on one distribution: its name, lowest and highest version as sort keys."""
    guards = [
        (name, *_interval(condition))
        for path, condition in conditions.items()
        if (name := distribution_of(path)) and condition != "absent"
    ]
    return min(guards, key=lambda guard: guard[1:].count(None), default=None)


def _interval(condition: str) -> tuple[Any, Any]:
    if condition == "present":
        return None, None
    comparators = parse_range(condition)
    lows = [sort_key(bound) for op, bound in comparators if op in (">=", ">", "==")]
    highs = [sort_key(bound) for op, bound in comparators if op in ("<=", "<", "==")]
    return max(lows, default=None), min(highs, default=None)


def compile_sources(
    folder: Path,
    tables: Mapping[str, Mapping[str, Any]],
    texts: Mapping[str, Mapping[str, str]],
    files: Mapping[str, bytes],
) -> Compiled:
    """The compiled form of a folder of sources, whose tables, texts and files are read already."""
    entries, withdrawn = read_sources(folder)
    return compile_entries(entries.values(), tables, texts, files, withdrawn.values())


def write_compiled(source: Path, destination: Path) -> dict[str, Any]:
    """Compile the matrix below ``source`` into ``destination``; returns the index."""
    tables, texts, files = read_tables(source), read_texts(source), read_files(source)
    compiled = compile_sources(source, tables, texts, files)
    write_files(compiled, tables, destination, texts, files)
    return compiled.summary


def read_texts(folder: Path) -> dict[str, dict[str, str]]:
    """What the entries below a matrix folder say in other languages, by language and English text."""
    from compatcheck.language import po_files

    return {path.stem: po_files.texts(path) for path in sorted(folder.glob("translations/*.po"))}


def write_files(
    compiled: Compiled,
    tables: Mapping[str, Any],
    destination: Path,
    texts: Mapping[str, Mapping[str, str]] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> None:
    """Lay the compiled form into a folder. Raises InputError where it cannot be written."""
    try:
        (destination / "tables").mkdir(parents=True, exist_ok=True)
        (destination / "entries.jsonl").write_bytes(compiled.entries)
        (destination / "conditions.jsonl").write_bytes(compiled.conditions)
        (destination / "patterns.jsonl").write_bytes(compiled.patterns)
        (destination / "ranking.jsonl").write_bytes(compiled.ranking)
        (destination / "postings.json").write_bytes(compiled.postings)
        for name, table in tables.items():
            (destination / "tables" / f"{name}.json").write_text(_to_json(table), encoding="utf-8")
        for name, content in (files or {}).items():
            (destination / "tables" / name).parent.mkdir(exist_ok=True)
            path = destination / "tables" / name
            if path.suffix == ".tsv":
                path.with_suffix(PACKED).write_bytes(pack(content))
            else:
                path.write_bytes(content)
        for language, known in (texts or {}).items():
            (destination / "translations").mkdir(exist_ok=True)
            (destination / "translations" / f"{language}.json").write_text(_to_json(known), encoding="utf-8")
        about = {key: compiled.summary[key] for key in ABOUT_KEYS}
        (destination / "about.json").write_text(_to_json(about), encoding="utf-8")
        (destination / "index.json").write_text(_to_json(compiled.summary), encoding="utf-8")
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError("compiling the matrix into", destination, seen, "choose a folder you can write to") from None


def _to_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
