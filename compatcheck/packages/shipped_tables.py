"""The tables that this installation ships, for readers that have no matrix at hand.

An installed wheel holds them compiled, a checkout as their TOML sources, and compiled in the cache once its matrix is
loaded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_COMPILED = os.path.join(_PACKAGE, "matrix", "data", "tables")
_SOURCES = os.path.join(os.path.dirname(_PACKAGE), "matrix")
_kept: str | None = None


def use_compiled(folder: str) -> None:
    """Read the tables from now on as they are compiled in a folder: parsing the TOML of a checkout takes longer."""
    global _kept
    _kept = folder


@cache
def shipped_table(name: str) -> Mapping[str, Any]:
    """The table of that name; ``frameworks`` holds by name what each file of that folder holds."""
    compiled = os.path.join(_kept or _COMPILED, f"{name}.json")
    if os.path.exists(compiled):
        with open(compiled, encoding="utf-8") as stream:
            table: Mapping[str, object] = json.load(stream)
        return table
    if name == "frameworks":
        folder = os.path.join(_SOURCES, name)
        files = sorted(each for each in os.listdir(folder) if each.endswith(".toml"))
        return {each.removesuffix(".toml"): _read_toml(os.path.join(folder, each)) for each in files}
    return _read_toml(os.path.join(_SOURCES, "tables", f"{name}.toml"))


def _read_toml(path: str) -> Mapping[str, object]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    with open(path, "rb") as stream:
        return tomllib.load(stream)
