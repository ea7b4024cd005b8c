"""What will be installed, one reader per kind of file: requirements, locks, project files, conda, images.

A reader is a module with ``TITLE``, ``recognises(path)`` and ``read(path, python)``; its name is the kind of the file.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping
from types import ModuleType

PLAIN = "requirements_txt"


@functools.cache
def readers() -> Mapping[str, ModuleType]:
    """The readers by name, one per unit of this folder."""
    folder = os.path.dirname(os.path.abspath(__file__))
    names = sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py") and not name.startswith("_"))
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}


def recognised(path: str) -> str | None:
    """The reader of a file, by its name and what it holds."""
    return next((name for name, reader in readers().items() if reader.recognises(path)), None)
