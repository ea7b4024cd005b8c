"""The matrix as a check uses it: from the wheel's compiled index, or compiled on the fly in a checkout."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.errors import DataError, InputError
from compatcheck.files.keyed_rows import PACKED, KeyedRows
from compatcheck.files.reading import open_bytes, open_text
from compatcheck.language import ENGLISH, LANGUAGES, current
from compatcheck.language import gettext as _
from compatcheck.language.suggestion import did_you_mean
from compatcheck.matrix.fetched import newer_than
from compatcheck.matrix.rows import Postings, Row, parse_rows
from compatcheck.packages.shipped_tables import use_compiled
from compatcheck.packages.versions import is_vendor_build, parse_version, release_of, sort_key
from compatcheck.terminal.messages import say

if TYPE_CHECKING:
    from compatcheck.results.logs import Pattern

FORMAT = 4
"""The compiled form; another number is another form."""

_COMPILED_FILES = (
    "index.json",
    "conditions.jsonl",
    "entries.jsonl",
    "patterns.jsonl",
    "ranking.jsonl",
    "postings.json",
)
_INDEX_KEYS = {"revision", "entries", "date", "environ", "guards", "unguarded", "of_model", "tables"}

_CORRECT = "correct the matrix"
"""How much of an id must be right for another to be offered: all but a letter."""

REFETCH = "run compatcheck matrix update"
"""What mends a fetched matrix."""

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_COMPILED = os.path.join(_PACKAGE, "data")
_CHECKOUT = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "matrix")


Place = tuple[int, int]
"""Where an entry's line starts among the compiled lines, and how long it is, in bytes."""


Reader = Callable[[Sequence[Place] | None], Iterable[Any]]


class Matrix(NamedTuple):
    """The compiled index, and how to get at what it points to.

    ``date`` is the day of the newest review of an entry or a table, in ISO form.
    ``guards`` holds by distribution rows of lowest version, highest version and the places of the conditions between;
    ``of_model`` is where those conditions start that are told only of a model that is known.
    ``conditions`` and ``read`` give the conditions and the entries at such places, or all, as plain JSON; ``table``
    gives a pair table by name, of those in ``tables``; ``patterns`` gives the error
    patterns. ``rows`` gives the entries in force in the order of their ids, ``postings`` their words.
    ``texts`` gives what the entries say in another language by their English words, as far as translated.
    """

    revision: str
    entries: int
    date: str
    environ: tuple[str, ...]
    guards: Mapping[str, list[list[Any]]]
    unguarded: list[list[int]]
    of_model: Collection[int]
    tables: Collection[str]
    conditions: Reader
    read: Reader
    table: Callable[[str], Mapping[str, Any]]
    patterns: Callable[[], tuple[Pattern, ...]]
    rows: Callable[[], tuple[Row, ...]]
    postings: Callable[[], Postings]
    texts: Callable[[str], Mapping[str, str]] = lambda language: {}


def load(folder: str | None = None) -> Matrix:
    """The matrix of ``folder`` (TOML sources), else the newer of the one shipped here and one fetched since.

    A fetched one that cannot be read is told on standard error, and the shipped one stands in. A checkout reads its own
    sources, or what was compiled of them before. Raises DataError where the installation carries no readable matrix.
    """
    if folder is not None:
        return _load_sources(source_folder(folder))
    if not is_installed():
        from compatcheck.matrix import _source_cache

        sources = source_folder(None)
        kept = _source_cache.compiled(sources)
        if kept is None:
            return _load_sources(sources)
        use_compiled(os.path.join(kept, "tables"))
        return load_compiled(kept, f"remove {kept}")
    try:
        fetched = newer_than(_COMPILED, FORMAT)
        if fetched is not None:
            return load_compiled(fetched, REFETCH)
    except DataError as error:
        say(f"{error}; using the bundled matrix instead")
    return load_compiled(_COMPILED)


def is_stale(matrix: Matrix, now: float | None = None) -> bool:
    """Whether nobody has reviewed anything in the matrix for 90 days before ``now``, in seconds since 1970 (today)."""
    return matrix.date < time.strftime("%Y-%m-%d", time.gmtime((time.time() if now is None else now) - 90 * 86400))


def is_installed() -> bool:
    """Whether this is an installation with its own compiled matrix; a checkout has its sources instead."""
    return os.path.exists(os.path.join(_COMPILED, "index.json"))


def require_installed() -> None:
    """Raises InputError in a checkout, where a fetched matrix would never be read."""
    if not is_installed():
        seen = "this is a checkout; it reads its own sources"
        raise InputError("updating the matrix of", os.path.dirname(_CHECKOUT), seen, "update the checkout instead")


def bundled_folder() -> str:
    """Where the compiled matrix of this installation lies."""
    return _COMPILED


def source_folder(folder: str | None) -> str:
    """The folder of TOML sources: the one named, else the checkout's. Raises InputError where it is none."""
    if folder is None and is_installed():
        seen = "this installation has only the compiled matrix"
        raise InputError("reading the sources of", "the matrix", seen, "pass the matrix folder of a checkout")
    source = folder or _CHECKOUT
    if not os.path.isdir(os.path.join(source, "tables")):
        raise InputError("reading the matrix in", source, "no tables/ folder there", "pass a folder of matrix sources")
    return source


def records(folder: str | None = None) -> dict[str, dict[str, object]]:
    """What was measured, by the path below the matrix folder that entries cite; empty where only a wheel is at hand."""
    if folder is None and not os.path.isdir(_CHECKOUT):
        return {}
    source = source_folder(folder)
    held = os.path.join(source, "records")
    names = sorted(name for name in (os.listdir(held) if os.path.isdir(held) else ()) if name.endswith(".json"))
    return {f"records/{name}": _read_json(os.path.join(held, name), "fix or remove the record") for name in names}


def load_compiled(folder: str, advice: str = "reinstall compatcheck") -> Matrix:
    """The matrix in its compiled form. Raises DataError with the advice, now or where a damaged part is read."""
    path, *others = (os.path.join(folder, name) for name in _COMPILED_FILES)
    index = _read_json(path, advice)
    for other in others:
        if not os.path.isfile(other):
            raise DataError("reading the matrix file", other, "the file is missing", advice)
    if index.get("format") != FORMAT or not set(index) >= _INDEX_KEYS:
        seen = f"the format is {index.get('format')!r}, or the file is truncated"
        raise DataError("reading the matrix file", path, seen, advice)
    conditions, entries, patterns, ranking = (_file_reader(other, advice) for other in others[:-1])
    return _matrix(
        index,
        conditions,
        entries,
        patterns,
        ranking,
        cache(lambda name: _read_table(os.path.join(folder, "tables", *name.split("/")), advice)),
        lambda: _read_json(others[-1], advice),
        cache(lambda language: _compiled_texts(folder, language, advice)),
    )


def _file_reader(path: str, advice: str) -> Reader:
    return _reader(lambda: open_bytes(path), path, advice)


def _load_sources(folder: str) -> Matrix:
    from io import BytesIO
    from pathlib import Path

    from compatcheck.matrix.compile import compile_sources, read_files, read_tables, read_texts

    tables, texts, files = read_tables(Path(folder)), read_texts(Path(folder)), read_files(Path(folder))
    compiled = compile_sources(Path(folder), tables, texts, files)

    def reader(lines: bytes) -> Reader:
        return _reader(lambda: BytesIO(lines), folder, _CORRECT)

    def table(name: str) -> Mapping[str, Any]:
        return tables.get(name) or read_source_table(folder, name)

    return _matrix(
        compiled.summary,
        reader(compiled.conditions),
        reader(compiled.entries),
        reader(compiled.patterns),
        reader(compiled.ranking),
        cache(table),
        lambda: json.loads(compiled.postings),
        lambda language: texts.get(language, {}),
    )


def _compiled_texts(folder: str, language: str, advice: str) -> Mapping[str, str]:
    """The translated texts; none where the matrix was compiled without them."""
    path = os.path.join(folder, "translations", f"{language}.json")
    return _read_json(path, advice) if os.path.exists(path) else {}


def _matrix(
    index: Mapping[str, Any],
    conditions: Reader,
    entries: Reader,
    patterns: Reader,
    ranking: Reader,
    table: Callable[[str], Mapping[str, Any]],
    postings: Callable[[], Postings],
    texts: Callable[[str], Mapping[str, str]],
) -> Matrix:
    return Matrix(
        index["revision"],
        index["entries"],
        index["date"],
        tuple(index["environ"]),
        index["guards"],
        index["unguarded"],
        frozenset(index["of_model"]),
        frozenset(index["tables"]),
        conditions,
        entries,
        table,
        patterns=cache(lambda: _parse_patterns(patterns(None))),
        rows=cache(lambda: parse_rows(ranking(None), conditions(None))),
        postings=cache(postings),
        texts=texts,
    )


def _parse_patterns(rows: Iterable[Any]) -> tuple[Pattern, ...]:
    from compatcheck.results.logs import Pattern

    return tuple(
        Pattern(entry, regex, tuple(literals), tuple(keys), frame) for entry, regex, literals, keys, frame in rows
    )


def _reader(opened: Callable[[], IO[bytes]], path: str, advice: str) -> Reader:
    """A function that gives the JSON values on the lines at some places, or on all."""

    def read(places: Sequence[Place] | None) -> list[dict[str, Any]]:
        try:
            with opened() as stream:
                lines = b",".join(stream if places is None else _lines_at(stream, places))
            values: list[dict[str, Any]] = json.loads(b"[%b]" % lines)
        except (OSError, ValueError, RecursionError) as error:
            raise DataError("reading the matrix file", path, str(error), advice) from None
        return values

    return read


def _read_json(path: str, advice: str) -> dict[str, Any]:
    try:
        with open_text(path, errors="strict") as stream:
            content: object = json.load(stream)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError("reading the matrix file", path, str(error), advice) from None
    if not isinstance(content, dict):
        raise DataError("reading the matrix file", path, "the file contains no table", advice)
    return content


def read_source_table(folder: str, name: str) -> Mapping[str, Any]:
    """A table of a folder of sources: rows of interfaces and links as they are shipped, any other in TOML."""
    from pathlib import Path

    from compatcheck.matrix.compile import read_toml

    if "/" in name:
        return _read_table(os.path.join(folder, *name.split("/")), _CORRECT)
    return read_toml(Path(folder) / "tables" / f"{name}.toml")


def _read_table(path: str, advice: str) -> Mapping[str, Any]:
    """A table of rows behind keys, or one that is read whole; of a package that none is kept of, nothing."""
    for rows in (f"{path}{PACKED}", f"{path}.tsv"):
        if os.path.isfile(rows):
            try:
                return KeyedRows.of_file(rows)
            except (OSError, ValueError) as error:
                raise DataError("reading the matrix file", rows, str(error), advice) from None
    if os.path.basename(os.path.dirname(path)) in ("interfaces", "links") and not os.path.isfile(f"{path}.json"):
        return {}
    return _read_json(f"{path}.json", advice)


def candidates(matrix: Matrix, environment: Environment) -> Iterator[dict[str, Any]]:
    """The conditions of the entries that the facts at hand do not rule out, in the order of their ids."""
    places: set[Place] = {(start, length) for start, length in matrix.unguarded}
    for name, guards in matrix.guards.items():
        installed = environment.get(f"distributions.{name}")
        if installed is None:
            continue
        version = None if isinstance(installed, Unknown) or is_vendor_build(installed) else parse_version(installed)
        # A build from before a release may be on either side of what changed in it, and on the way to it.
        spans = [] if version is None else _spans(version)
        for low, high, *guarded in guards:
            reached = ((low is None or low <= last) and (high is None or first <= high) for first, last in spans)
            if not spans or any(reached):
                places.update(map(tuple, guarded))
    if isinstance(environment.get("model"), Unknown):
        places = {place for place in places if place[0] not in matrix.of_model}
    yield from matrix.conditions(sorted(places))


def _spans(version: Version) -> list[tuple[list[Any], list[Any]]]:
    """The stretches of releases, as sort keys, that a version may stand for.

    A development version stands for all since the first of the line before it.
    """
    key, release = sort_key(version), sort_key(release_of(version))
    if not version.is_devrelease:
        return [(key, key), (release, release)]
    minor = version.minor
    before = Version(f"{version.major}.{minor - 1}" if minor else f"{max(version.major - 1, 0)}")
    return [(min(sort_key(before), key), key), (release, release)]


def _lines_at(stream: IO[bytes], places: Iterable[Place]) -> Iterator[bytes]:
    for start, length in places:
        stream.seek(start)
        yield stream.read(length)


def all_entries(matrix: Matrix) -> list[dict[str, Any]]:
    """Every entry in force, whole as plain JSON, in the order of their ids."""
    return [entry for entry in matrix.read(None) if "withdrawn" not in entry]


def withdrawn_entries(matrix: Matrix) -> list[dict[str, Any]]:
    """What is kept of the entries that are withdrawn, in the order of their ids."""
    return [entry for entry in matrix.read(None) if "withdrawn" in entry]


def find_entry(matrix: Matrix, entry_id: str) -> dict[str, Any]:
    """The entry with an id, in any letter case, also one that is withdrawn. Raises InputError where there is none."""
    ids = []
    entry: dict[str, Any]
    for entry in matrix.read(None):
        if entry["id"] == entry_id.upper():
            return entry
        ids.append(entry["id"])
    advice = did_you_mean(entry_id.upper(), ids, _("`compatcheck matrix search` finds entries"))
    raise InputError("looking up", entry_id, "the matrix has no such entry", advice)


def require_ids(matrix: Matrix, ids: Iterable[str]) -> tuple[str, ...]:
    """The ids as the entries spell them. Raises InputError for one that no entry has."""
    return tuple(find_entry(matrix, entry_id)["id"] for entry_id in ids)


def in_language(matrix: Matrix, entry: dict[str, Any], language: str | None = None) -> dict[str, Any]:
    """The entry with its prose in a language (by default the one in use) as far as it is translated."""
    language = language or current()
    if language == ENGLISH:
        return entry
    texts = matrix.texts(language)
    prose = {field: texts.get(entry[field], entry[field]) for field in ("title", "summary", "mechanism")}
    remedies = [
        {key: texts.get(value, value) if key in ("why", "action") else value for key, value in remedy.items()}
        for remedy in entry["remedies"]
    ]
    misleading = [texts.get(advice, advice) for advice in entry.get("misleading", ())]
    return {**entry, **prose, "remedies": remedies, **({"misleading": misleading} if misleading else {})}


def search(matrix: Matrix, words: Iterable[str], symptoms: Set[str] = frozenset()) -> list[dict[str, Any]]:
    """The entries whose text holds all of the words, in any letter case, or that explain them as a line of an error.

    Words that are not ASCII are looked for in the translations as well; ``symptoms`` are those that the words name,
    and an entry that has all of them is found if its text holds the words that are ASCII.
    """
    line = " ".join(words)
    wanted = line.casefold().split()
    ascii_only = line.isascii()
    named = set() if ascii_only else set(symptoms)
    names = [word for word in wanted if word.isascii()]
    languages = (ENGLISH,) if ascii_only else LANGUAGES
    explained = {pattern.entry for pattern in matrix.patterns() if re.search(pattern.regex, line, re.IGNORECASE)}
    found = []
    for entry in all_entries(matrix):
        text = "\n".join(_text(in_language(matrix, entry, language)) for language in languages)
        has_symptom = bool(named) and named <= set(entry.get("symptoms", ()))
        needed = names if has_symptom else wanted
        if entry["id"] in explained or all(word in text for word in needed):
            found.append(entry)
    return found


def _text(entry: Mapping[str, object]) -> str:
    fields = ("id", "title", "summary", "mechanism", "symptoms", "misleading", "packages", "affected")
    return json.dumps([entry.get(field) for field in fields], ensure_ascii=False).casefold()
