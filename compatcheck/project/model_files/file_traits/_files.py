"""What a rule on a model's files is given, and the rules of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, cast

from compatcheck.errors import InputError
from compatcheck.files.json_text import read_json_object
from compatcheck.files.units import trait_name, units


class Files(NamedTuple):
    """A model's folder with the names of its files, its ``config.json``, and the facts under ``model`` read so far."""

    folder: str
    names: list[str]
    config: Mapping[str, Any]
    model: Mapping[str, Any]

    def json(self, name: str) -> dict[str, Any] | None:
        """The content of a JSON file of the folder: nothing where it is not there, None where it cannot be read."""
        try:
            return read_json_object(f"{self.folder}/{name}") if name in self.names else {}
        except InputError:
            return None


class Rule(Protocol):
    def find(self, files: Files) -> bool: ...


def rules() -> Mapping[str, Rule]:
    """Each rule by its trait."""
    found = units("compatcheck.project.model_files.file_traits")
    return {trait_name(name): cast(Rule, rule) for name, rule in found.items()}


def traits_of(files: Files) -> dict[str, str | None]:
    """The traits that the files show, each with the name of the file that shows it where that is one alone."""
    return {trait: getattr(rule, "FILE", None) for trait, rule in rules().items() if rule.find(files)}
