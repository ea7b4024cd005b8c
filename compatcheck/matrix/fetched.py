"""The matrix that was fetched since this installation was made: where it lies, and whether it is the newer one.

A small pointer file names the folder in use. It is replaced in one step, so that a check finds the old matrix or the
new one, and never a part. See `compatcheck.delivery` for how it gets there.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from compatcheck.errors import DataError
from compatcheck.files import storage
from compatcheck.files.reading import open_text

ABOUT_KEYS = ("format", "revision", "entries", "date")
"""What tells one matrix from another: the number of its compiled form, and as the index has them the rest."""

POINTER = "current.json"

_AGAIN = "run compatcheck matrix update"


class About(NamedTuple):
    """What ``about.json`` says of the matrix beside it."""

    format: int
    revision: str
    entries: int
    date: str


class Pointer(NamedTuple):
    """Which matrix is in use: the name of its folder, what it is, where it came from, and what was in use before."""

    folder: str
    about: About
    url: str
    previous: str | None = None


def store() -> str:
    """The folder of everything that was fetched."""
    return os.path.join(storage.data_folder(), "matrix")


def folder_of(pointer: Pointer) -> str:
    return os.path.join(store(), "revisions", pointer.folder)


def read_pointer() -> Pointer | None:
    """What is in use of what was fetched; None where nothing was. Raises DataError where the pointer is unreadable."""
    path = os.path.join(store(), POINTER)
    try:
        with open_text(path, errors="strict") as stream:
            told = json.load(stream)
        pointer = Pointer(told["folder"], About(*(told[key] for key in ABOUT_KEYS)), told["url"], told.get("previous"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(
            "reading the version of the active matrix in", path, f"the file is damaged: {error!r}", _AGAIN
        ) from None
    return pointer


def read_about(folder: str, advice: str = "reinstall compatcheck") -> About:
    """What a compiled matrix says of itself. Raises DataError, with the advice, where that is unreadable."""
    path = os.path.join(folder, "about.json")
    try:
        with open_text(path, errors="strict") as stream:
            told = json.load(stream)
        return About(*(told[key] for key in ABOUT_KEYS))
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError("reading", path, f"the file is damaged: {error!r}", advice) from None


def newer_than(bundled: str, number: int) -> str | None:
    """The folder of the fetched matrix, where it has the form ``number`` and is not older than the bundled one."""
    pointer = read_pointer()
    if pointer is None or pointer.about.format != number:
        return None
    about = read_about(bundled)
    return folder_of(pointer) if pointer.about.date >= about.date and pointer.about != about else None
