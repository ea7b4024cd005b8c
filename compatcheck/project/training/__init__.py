"""Training configurations, one reader per format in `formats`.

A reader has ``TITLE`` (its name in messages), ``SUFFIXES``, ``recognises(document)`` by content, and
``read(document)`` that gives a `Configuration`. It may have ``ROLE`` where its file is only a part of a run
(``deepspeed``, ``accelerate``, ``adapter``, ``script``, ``program``; ``config`` by default), ``MARKS`` (words of
which at least one stands in every such file, so that others need not be parsed), ``NAMED_AS`` (how the names of files
begin that mean to be one, so that a broken one is reported), ``GENERAL`` where other readers that recognise the
same file come first, and ``recognises_named(document)`` where it takes more if the user named the file.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from types import ModuleType

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import decoded, read_bytes
from compatcheck.files.units import units
from compatcheck.project.training.document import Document, largest_of, open_document, parse_document

BROKEN = "broken"
OF_CODE = (".py", ".ipynb")


@functools.cache
def readers() -> Mapping[str, ModuleType]:
    """The readers by name, the general ones last."""
    return dict(sorted(units(f"{__name__}.formats").items(), key=lambda item: getattr(item[1], "GENERAL", False)))


def role_of(reader: str) -> str:
    """The part of a run that the files of a reader tell."""
    return str(getattr(readers()[reader], "ROLE", "config"))


def reader_of(document: Document) -> str | None:
    """The reader that a document belongs to by its content."""
    ending = _ending(document.path)
    for name, reader in readers().items():
        if ending in reader.SUFFIXES and reader.recognises(document):
            return name
    return None


def identify(path: str) -> str | None:
    """The reader of a file that the user named.

    Raises `InputError` where it has an ending that readers know and cannot be parsed.
    """
    if not any(_ending(path) in reader.SUFFIXES for reader in readers().values()):
        return None
    document = open_document(path)
    return reader_of(document) or _reader_of_named(document)


def _reader_of_named(document: Document) -> str | None:
    """The reader that takes a document because the user named it."""
    ending = _ending(document.path)
    for name, reader in readers().items():
        if ending in reader.SUFFIXES and hasattr(reader, "recognises_named") and reader.recognises_named(document):
            return name
    return None


def identify_found(path: str) -> str | None:
    """The reader of a file that was only met on the way; `BROKEN` where it has our words and cannot be read.

    Raises `InputError` where it is broken although its name says what it means to be.
    """
    ending, name = _ending(path), os.path.basename(path).lower()
    candidates = [reader for reader in readers().values() if ending in reader.SUFFIXES]
    if not candidates:
        return None
    is_named = any(
        name.startswith(getattr(reader, "NAMED_AS", ())) for reader in candidates if hasattr(reader, "NAMED_AS")
    )
    largest = limits.MET_CODE_BYTES if ending in OF_CODE else limits.MET_BYTES
    try:
        if os.path.getsize(path) > largest and not is_named:
            return None
        raw = read_bytes(path, largest)
    except OSError:
        return None
    except InputError:
        if is_named:
            raise
        return None
    if not is_named and not any(_has_mark(raw, reader) for reader in candidates):
        return None
    if ending in OF_CODE and len(raw) > largest_of(path):
        return BROKEN
    try:
        return reader_of(parse_document(path, decoded(raw, path)))
    except InputError:
        if is_named:
            raise
        return BROKEN


def trains(path: str) -> bool:
    """Whether a file of Python makes what a training needs; one that cannot be read does not."""
    try:
        return path.endswith(OF_CODE) and bool(readers()["python_script"].trains(open_document(path)))
    except InputError:
        return False


def _has_mark(raw: bytes, reader: ModuleType) -> bool:
    marks = getattr(reader, "MARKS", ())
    return not marks or any(mark.encode() in raw for mark in marks)


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()
