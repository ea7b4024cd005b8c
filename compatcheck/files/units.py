"""The units of a folder: its modules whose names have no leading underscore. Nothing is registered."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Collection, Mapping
from types import ModuleType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.cache
def unit_names(package: str) -> tuple[str, ...]:
    """The names of the units of one of our packages, in order, without importing any."""
    folder = os.path.join(_PACKAGE, *package.split(".")[1:])
    return tuple(sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py") and not name.startswith("_")))


@functools.cache
def units(package: str) -> Mapping[str, ModuleType]:
    """The modules of a package by name, in the order of their names."""
    return {name: importlib.import_module(f"{package}.{name}") for name in unit_names(package)}


def on_first_use(package: str, names: Mapping[str, Collection[str]]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package that imports each of its modules when one of the module's names is asked for."""

    def load(name: str) -> object:
        for module, offered in names.items():
            if name in offered:
                return getattr(importlib.import_module(f"{package}.{module}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


def trait_name(unit: str) -> str:
    """The trait that a unit decides: the name of its file, with hyphens."""
    return unit.replace("_", "-")


@functools.cache
def traits_of_units(package: str) -> frozenset[str]:
    """The traits that the units of a package decide, without importing any."""
    return frozenset(map(trait_name, unit_names(package)))
