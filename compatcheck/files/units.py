"""The units of a folder: its modules whose names have no leading underscore. Nothing is registered."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping
from types import ModuleType


@functools.cache
def units(package: str) -> Mapping[str, ModuleType]:
    """The modules of a package by name, in the order of their names."""
    folder = os.path.dirname(str(importlib.import_module(package).__file__))
    names = sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py") and not name.startswith("_"))
    return {name: importlib.import_module(f"{package}.{name}") for name in names}
