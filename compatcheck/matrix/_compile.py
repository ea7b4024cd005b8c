"""From the authored TOML to the compact form the wheel carries.

``entries.jsonl`` holds one whole entry a line. ``index.json`` holds, for each distribution, the interval of versions
in which an entry could apply and where its line lies, so that a check reads only lines that can matter.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from compatcheck.errors import DataError, InputError
from compatcheck.matrix._entry import Entry
from compatcheck.matrix._load import FORMAT
from compatcheck.matrix._order import parse_range, sort_key


def read_entries(folder: Path) -> dict[Path, Entry]:
    """Every entry below a matrix folder, by file. Raises InputError naming the file and each fault in it."""
    files = sorted(path for path in folder.glob("*/*.toml") if path.parent.name not in ("tables", "records"))
    return {path: read_entry(path) for path in files}


def read_entry(path: Path) -> Entry:
    try:
        return Entry.model_validate(read_toml(path))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_url=False)
        )
        raise InputError("reading matrix entry", path, faults, "correct the entry") from None


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError("reading", path, str(error), "correct the file") from None


def read_tables(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: read_toml(path) for path in sorted(folder.glob("tables/*.toml"))}


def compile_entries(entries: Iterable[Entry]) -> tuple[dict[str, Any], bytes]:
    """The index and the lines it points into. Raises DataError where two entries share an id."""
    guards: dict[str, list[list[Any]]] = {}
    unguarded: list[list[int]] = []
    environ: set[str] = set()
    text = b""
    seen: set[str] = set()
    for entry in sorted(entries, key=lambda entry: entry.id):
        if entry.id in seen:
            raise DataError("compiling the matrix entry", entry.id, "the id is used twice", "give one a new id")
        seen.add(entry.id)
        stated = entry.model_copy(update={"packages": list(entry.distributions)})
        line = stated.model_dump_json(exclude_defaults=True).encode() + b"\n"
        place = [len(text), len(line)]
        text += line
        if entry.withdrawn:
            continue
        for conditions in entry.affected:
            environ.update(path[8:] for path in conditions if path.startswith("environ."))
            guard = _guard(conditions)
            if guard is None:
                unguarded.append(place)
            else:
                guards.setdefault(guard[0], []).append([*guard[1:], *place])
    index = {
        "format": FORMAT,
        "revision": hashlib.sha256(text).hexdigest()[:12],
        "entries": len(seen),
        "environ": sorted(environ),
        "guards": guards,
        "unguarded": unguarded,
    }
    return index, text


def _guard(conditions: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """The table's narrowest demand on one distribution: its name, lowest and highest version as sort keys."""
    guards = [
        (path[14:], *_interval(condition))
        for path, condition in conditions.items()
        if path.startswith("distributions.") and condition != "absent"
    ]
    return min(guards, key=lambda guard: guard[1:].count(None), default=None)


def _interval(condition: str) -> tuple[Any, Any]:
    if condition == "present":
        return None, None
    comparators = parse_range(condition)
    lows = [sort_key(bound) for op, bound in comparators if op in (">=", ">", "==")]
    highs = [sort_key(bound) for op, bound in comparators if op in ("<=", "<", "==")]
    return max(lows, default=None), min(highs, default=None)


def write_compiled(source: Path, destination: Path) -> dict[str, Any]:
    """Compile the matrix below ``source`` into ``destination``; returns the index."""
    index, text = compile_entries(read_entries(source).values())
    tables = read_tables(source)
    (destination / "tables").mkdir(parents=True, exist_ok=True)
    (destination / "entries.jsonl").write_bytes(text)
    for name, table in tables.items():
        (destination / "tables" / f"{name}.json").write_text(_to_json(table), encoding="utf-8")
    (destination / "index.json").write_text(_to_json(index), encoding="utf-8")
    return index


def _to_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
