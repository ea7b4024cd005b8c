"""Find the file that holds ``[tool.compatcheck]``; most hold none, and what parses it is loaded for those that do."""

from __future__ import annotations

import os
from collections.abc import Iterator

from compatcheck.errors import InputError
from compatcheck.files.reading import decoded, read_bytes
from compatcheck.settings._model import NONE, Settings

FILE = "pyproject.toml"


def find(folder: str = ".") -> Settings:
    """The settings in the nearest ``pyproject.toml``, at or above the folder, that has such a table; none, if none has.

    A file that does not name compatcheck is not parsed. Raises `InputError` where one that does is no TOML, or its
    table is not as it should be.
    """
    found = (_settings(path) for path in _candidates(folder))
    return next((settings for settings in found if settings.file), NONE)


def read(path: str) -> Settings:
    """The settings in a file that is named. Raises `InputError` where there are none, or they are wrong."""
    settings = _settings(path)
    if settings.file is None:
        raise InputError("reading settings from", path, "there is no table [tool.compatcheck]", "add one")
    return settings


def nearest(folder: str) -> str | None:
    """The project file that settings belong in: one that has some, else the nearest one."""
    return find(folder).file or next(_candidates(folder), None)


def _candidates(folder: str) -> Iterator[str]:
    """Every project file at or above the folder, the nearest first, named from there."""
    here, up = os.path.abspath(folder), ""
    while True:
        path = os.path.join(here, FILE)
        if os.path.isfile(path):
            yield os.path.normpath(os.path.join(folder, up, FILE))
        above = os.path.dirname(here)
        if above == here:
            return
        here, up = above, os.path.join(up, os.pardir)


def _settings(path: str) -> Settings:
    raw = read_bytes(path)
    if b"compatcheck" not in raw:
        return NONE
    from compatcheck.settings import _parse

    return _parse.settings(path, decoded(raw, path))
