"""The compiled form of a checkout's sources, kept in the cache until one of them, or what compiles them, changes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec

from compatcheck.errors import InputError
from compatcheck.files.storage import cache_folder

_KEPT_DAYS = 2
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def compiled(sources: str) -> str | None:
    """The folder of the compiled form of these sources, made where it is not there yet; None where none can be kept.

    Raises DataError or InputError where the sources are wrong.
    """
    beside = os.path.join(cache_folder(), "checkouts")
    place = os.path.join(beside, _identity(sources))
    if not _is_whole(place):
        _make(sources, place)
        _remove_old(beside, place)
    return place if _is_whole(place) else None


def _is_whole(place: str) -> bool:
    return os.path.isfile(os.path.join(place, "index.json"))


def _make(sources: str, place: str) -> None:
    """Compile into a folder of its own and move that into place; nothing is made where another process was first."""
    import shutil
    import tempfile
    from pathlib import Path

    from compatcheck.matrix.compile import (
        compile_sources,
        read_files,
        read_tables,
        read_texts,
        write_files,
    )

    texts = read_texts(Path(sources)) if _reads_catalogues() else {}
    tables, files = read_tables(Path(sources)), read_files(Path(sources))
    form = compile_sources(Path(sources), tables, texts, files)
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        temporary = tempfile.mkdtemp(prefix=".", dir=os.path.dirname(place))
    except OSError:
        return
    try:
        write_files(form, tables, Path(temporary), texts, files)
        os.rename(temporary, place)
    except (OSError, InputError):
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_old(beside: str, place: str) -> None:
    """What other processes remove meanwhile is no fault."""
    import shutil

    limit = time.time() - _KEPT_DAYS * 86400
    for entry in os.scandir(beside) if os.path.isdir(beside) else ():
        with suppress(OSError):
            if entry.path != place and entry.stat().st_mtime < limit:
                shutil.rmtree(entry.path, ignore_errors=True)


def _identity(sources: str) -> str:
    """What changes with every source and with the code that compiles them: their names, sizes and times."""
    digest = sha256(f"{sys.version} {_reads_catalogues()}".encode())
    for path, size, changed in sorted(_files(sources)) + sorted(_files(_PACKAGE)):
        digest.update(f"{path}\0{size}\0{changed}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def _reads_catalogues() -> bool:
    """Whether babel is there; a checkout without it tells its entries in English."""
    return find_spec("babel") is not None


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif entry.name.endswith((".toml", ".po", ".py", ".tsv", ".json")):
            about = entry.stat()
            yield entry.path, about.st_size, about.st_mtime_ns
