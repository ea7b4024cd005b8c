"""Which traits reading the user's own files decides; each is named after the file of its rule, and none is imported."""

from __future__ import annotations

from collections.abc import Collection

from compatcheck.files.units import trait_name, traits_of_units, units


def from_code() -> frozenset[str]:
    """The traits of a model's own code."""
    return traits_of_units("compatcheck.project.model_files.traits")


def from_files() -> frozenset[str]:
    """The traits of a model's other files, which a model without code of its own can have as well."""
    return traits_of_units("compatcheck.project.model_files.file_traits")


def from_trainers() -> frozenset[str]:
    """The traits of the user's own subclass of the Trainer, and of how it is called."""
    return traits_of_units("compatcheck.project.scripts.rules")


def keywords_of(traits: Collection[str]) -> frozenset[tuple[str, str]]:
    """Each class and keyword that these traits of calls are about; their rules are imported if there is any."""
    if not traits:
        return frozenset()
    rules = (rule for name, rule in units("compatcheck.project.scripts.rules").items() if trait_name(name) in traits)
    about = (rule for rule in rules if hasattr(rule, "KEYWORDS"))
    return frozenset((each, keyword) for rule in about for each in rule.CLASSES for keyword in rule.KEYWORDS)
