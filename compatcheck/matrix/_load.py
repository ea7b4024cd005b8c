"""The matrix as a check uses it: from the wheel's compiled index, or compiled on the fly in a checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compatcheck.errors import DataError, InputError
from compatcheck.matrix._order import is_vendor_build, parse_version, sort_key
from compatcheck.model import Environment, Unknown, lookup

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_COMPILED = os.path.join(_PACKAGE, "data")
_CHECKOUT = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "matrix")


Place = tuple[int, int]
"""Where an entry's line starts among the compiled lines, and how long it is, in bytes."""


class Matrix(NamedTuple):
    """The compiled index, and how to get at what it points to.

    ``guards`` holds by distribution rows of lowest version, highest version, start and length of an entry's line;
    ``read`` gives the bytes of the lines at such places, or of all; ``table`` gives a pair table by name.
    """

    revision: str
    entries: int
    environ: tuple[str, ...]
    guards: Mapping[str, list[list[Any]]]
    unguarded: list[list[int]]
    read: Callable[[Sequence[Place] | None], Iterable[bytes]]
    table: Callable[[str], Mapping[str, Any]]


def load(folder: str | None = None) -> Matrix:
    """The matrix of ``folder`` (TOML sources), else the one shipped with this installation.

    Raises DataError where the installation carries no readable matrix.
    """
    if folder is None and os.path.exists(os.path.join(_COMPILED, "index.json")):
        return _load_compiled(_COMPILED)
    return _load_sources(source_folder(folder))


def source_folder(folder: str | None) -> str:
    """The folder of TOML sources: the one named, else the checkout's. Raises InputError where it is none."""
    source = folder or _CHECKOUT
    if not os.path.isdir(os.path.join(source, "tables")):
        raise InputError("reading the matrix in", source, "no tables/ folder there", "name a folder of matrix sources")
    return source


def _load_compiled(folder: str) -> Matrix:
    lines = os.path.join(folder, "entries.jsonl")

    def read(places: Sequence[Place] | None) -> Iterator[bytes]:
        with open(lines, "rb") as stream:
            if places is None:
                yield from stream
            for start, length in places or ():
                stream.seek(start)
                yield stream.read(length)

    def table(name: str) -> Mapping[str, Any]:
        return _read_json(os.path.join(folder, "tables", f"{name}.json"))

    return _matrix(_read_json(os.path.join(folder, "index.json")), read, table)


def _load_sources(folder: str) -> Matrix:
    from pathlib import Path

    from compatcheck.matrix._compile import compile_entries, read_entries, read_toml

    index, text = compile_entries(read_entries(Path(folder)).values())
    return _matrix(
        index,
        lambda places: text.splitlines() if places is None else [text[at : at + length] for at, length in places],
        lambda name: read_toml(Path(folder) / "tables" / f"{name}.toml"),
    )


def _matrix(
    index: Mapping[str, Any],
    read: Callable[[Sequence[Place] | None], Iterable[bytes]],
    table: Callable[[str], Mapping[str, Any]],
) -> Matrix:
    return Matrix(
        index["revision"], index["entries"], tuple(index["environ"]), index["guards"], index["unguarded"], read, table
    )


def _read_json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            content: dict[str, Any] = json.load(stream)
    except (OSError, ValueError) as error:
        raise DataError("reading the matrix file", path, str(error), "reinstall compatcheck") from None
    return content


def candidates(matrix: Matrix, environment: Environment) -> Iterator[dict[str, Any]]:
    """The entries that the versions at hand do not rule out, as plain JSON, in the order of their ids."""
    places: set[Place] = {(start, length) for start, length in matrix.unguarded}
    for name, guards in matrix.guards.items():
        installed = lookup(environment, f"distributions.{name}")
        if installed is None:
            continue
        version = None if isinstance(installed, Unknown) or is_vendor_build(installed) else parse_version(installed)
        if version is None:
            places.update((start, length) for _, _, start, length in guards)
            continue
        key = sort_key(version)
        places.update(
            (start, length)
            for low, high, start, length in guards
            if (low is None or low <= key) and (high is None or key <= high)
        )
    for line in matrix.read(sorted(places)):
        yield json.loads(line)


def all_entries(matrix: Matrix) -> list[dict[str, Any]]:
    """Every entry whole as plain JSON, withdrawn ones included, in the order of their ids."""
    return [json.loads(line) for line in matrix.read(None)]


def find_entry(matrix: Matrix, entry_id: str) -> dict[str, Any]:
    """The entry with an id, in any letter case. Raises InputError where there is none."""
    for entry in all_entries(matrix):
        if entry["id"] == entry_id.upper():
            return entry
    raise InputError("explaining", entry_id, "the matrix has no such entry", "see compatcheck matrix list")


def search(matrix: Matrix, words: Iterable[str]) -> list[dict[str, Any]]:
    """The entries whose text holds all of the words, in any letter case."""
    wanted = [word.casefold() for word in words]
    return [entry for entry in all_entries(matrix) if all(word in _text(entry) for word in wanted)]


def _text(entry: Mapping[str, Any]) -> str:
    fields = ("id", "title", "summary", "mechanism", "symptoms", "misleading", "packages", "affected")
    return json.dumps([entry.get(field) for field in fields], ensure_ascii=False).casefold()
