"""The rules of this folder, run over one file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import ModuleType

from compatcheck.files.units import units
from compatcheck.project.model_files.traits._code import Code


def rules() -> Collection[ModuleType]:
    return units("compatcheck.project.model_files.traits").values()


def traits_of(code: Code) -> Iterator[tuple[str, int]]:
    """The traits that one file gives the model, each with the line that shows it."""
    for rule in rules():
        line = rule.find(code) if code.kind == rule.KIND else None
        if line is not None:
            yield rule.TRAIT, line
