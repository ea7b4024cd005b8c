"""What will be installed, one reader per kind of file: requirements, locks, project files, conda, images.

A reader is a module that keeps to `Reader`; its name is the kind of the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol, cast

from compatcheck.environment import Environment
from compatcheck.files.units import units

PLAIN = "requirements_txt"
_MARKS = ("requirements", "dockerfile", "containerfile", ".lock", ".toml", ".yml", ".yaml")
"""In lower case, the name of every file that a reader recognises has one of them."""


class Reader(Protocol):
    """``python`` is the version whose markers count."""

    TITLE: str

    def recognises(self, path: str) -> bool: ...

    def read(self, path: str, python: str | None = None) -> Environment: ...


def readers() -> Mapping[str, Reader]:
    """The readers by name, one per unit of `formats`."""
    return cast(Mapping[str, Reader], units(f"{__name__}.formats"))


def identify(path: str) -> str | None:
    """The reader of a file, by its name and what it holds."""
    name = os.path.basename(path).lower()
    if not any(mark in name for mark in _MARKS):
        return None
    return next((name for name, reader in readers().items() if reader.recognises(path)), None)
