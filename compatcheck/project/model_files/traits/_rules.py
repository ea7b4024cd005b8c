"""The rules of this folder, run over one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, cast

from compatcheck.files.units import trait_name, units
from compatcheck.project.model_files.traits._code import Code, Kind


class Rule(Protocol):
    KIND: Kind

    def find(self, code: Code) -> int | None: ...


def rules() -> Mapping[str, Rule]:
    """Each rule by its trait."""
    found = units("compatcheck.project.model_files.traits")
    return {trait_name(name): cast(Rule, rule) for name, rule in found.items()}


def traits_of(code: Code) -> Iterator[tuple[str, int]]:
    """The traits that one file gives the model, each with the line that shows it."""
    for trait, rule in rules().items():
        line = rule.find(code) if code.kind == rule.KIND else None
        if line is not None:
            yield trait, line
