"""Where the files of one training are that others name: the folders that a relative path may start from."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_MARKS_OF_ROOTS = (".git", "pyproject.toml", "setup.py")
_HIGHEST = 6


class File(NamedTuple):
    """A file of a training with the reader it belongs to, and the folder that was searched where it was found so."""

    reader: str
    path: str
    root: str | None = None


def folders_of(files: Iterable[File]) -> tuple[str, ...]:
    """The folders that a relative path in these files may start from, the nearest first.

    The user's home and the folder for temporary files hold many projects and are none.
    """
    bases: dict[str, None] = {}
    shared = {os.path.expanduser("~"), tempfile.gettempdir()}
    for file in files:
        folder = os.path.dirname(os.path.abspath(file.path))
        top = os.path.abspath(file.root) if file.root else None
        for _ in range(_HIGHEST):
            bases[folder] = None
            if folder == top or os.path.dirname(folder) == folder:
                break
            if any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS_OF_ROOTS):
                break
            folder = os.path.dirname(folder)
            if folder in shared:
                break
        if top:
            bases[top] = None
    bases[os.getcwd()] = None
    return tuple(bases)


def existing(name: str, bases: Sequence[str]) -> list[str]:
    """The different files or folders that a path may mean, seen from these folders."""
    found: dict[str, str] = {}
    for base in bases:
        path = os.path.join(base, os.path.expanduser(name))
        if os.path.exists(path):
            found.setdefault(os.path.realpath(path), _relative(path))
    return list(found.values())


def _relative(path: str) -> str:
    """Relative to where we are, where that is below us; as the user's own paths are written."""
    relative = os.path.relpath(path)
    return path.replace(f"{os.sep}.{os.sep}", os.sep) if relative.startswith("..") else relative
