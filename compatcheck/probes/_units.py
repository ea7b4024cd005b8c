"""Where the probes are: the plain file names of the folders beside this file."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent


@functools.cache
def paths() -> dict[str, Path]:
    """The file of every probe by its name, sorted by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("[!_]*/[!_]*.py"), key=lambda path: path.stem)}


def unit(name: str) -> ModuleType:
    """A probe as the module it is."""
    return importlib.import_module(f"{__package__}.{paths()[name].parent.name}.{name}")
