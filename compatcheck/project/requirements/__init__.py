"""What will be installed, one reader per kind of file: requirements, locks, project files, conda, images.

A reader is a module with ``TITLE``, ``recognises(path)`` and ``read(path, python)``; its name is the kind of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from compatcheck.files.units import units

PLAIN = "requirements_txt"


def readers() -> Mapping[str, ModuleType]:
    """The readers by name, one per unit of `formats`."""
    return units(f"{__name__}.formats")


def identify(path: str) -> str | None:
    """The reader of a file, by its name and what it holds."""
    return next((name for name, reader in readers().items() if reader.recognises(path)), None)
