"""The rules of this folder, run over one file."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from types import ModuleType

from compatcheck.facts.model_files.traits._code import Code


def rules() -> list[ModuleType]:
    folder = os.path.dirname(os.path.abspath(__file__))
    names = sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py") and not name.startswith("_"))
    return [importlib.import_module(f"compatcheck.facts.model_files.traits.{name}") for name in names]


def traits_of(code: Code) -> Iterator[tuple[str, int]]:
    """The traits that one file gives the model, each with the line that shows it."""
    for rule in rules():
        line = rule.find(code) if code.kind == rule.KIND else None
        if line is not None:
            yield rule.TRAIT, line
