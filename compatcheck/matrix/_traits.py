"""Traits: named relations between facts, each decided by one unit named after it, or by a row of a table.

A unit of ``traits/`` computes one from facts and tables; a rule of `compatcheck.project` has read one from the user's
own files; a row of the table ``imported-names`` names one by what a model's own code imports. Any other trait is known
only where a snapshot or the table of model families states it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from datetime import date
from functools import cache
from typing import NamedTuple, Protocol, cast

from compatcheck.environment import Environment, Unknown
from compatcheck.files.units import traits_of_units
from compatcheck.inference.report_date import day_of_report
from compatcheck.inference.torch_builds import Table as Table
from compatcheck.matrix.matching.match import TraitFinder, TraitVerdict
from compatcheck.project import trait_names

_UNITS = "compatcheck.matrix.traits"
_IMPORTS = "imports-"
_OPEN = TraitVerdict(None, missing=("model.traits",))


class _Unit(Protocol):
    def find(self, environment: Environment, table: Table) -> TraitVerdict: ...


class _Family(NamedTuple):
    """A published family: the traits of all its weights and of its code, and the last day of those since mended."""

    weights: Collection[str] = ()
    traits: Collection[str] = ()
    until: Mapping[str, date | str] = {}

    def held_until(self, trait: str) -> date:
        """The last day up to which every published revision of the code had the trait, as far as is known."""
        day = self.until.get(trait, date.min)
        return date.fromisoformat(day) if isinstance(day, str) else day


def computed_traits() -> frozenset[str]:
    """The names of the traits that are computed from facts and tables: one per unit file."""
    return traits_of_units(_UNITS)


def trait_finder(table: Table) -> TraitFinder:
    """A function that decides whether an environment has a trait, computing each one at most once."""
    known: dict[str, TraitVerdict] = {}
    families = cache(lambda model: _family(model, table))

    def find(name: str, environment: Environment) -> TraitVerdict:
        if name not in known:
            known[name] = _find(name, environment, table, families)
        return known[name]

    return find


def _find(name: str, environment: Environment, table: Table, families: Callable[[str], _Family]) -> TraitVerdict:
    if name in computed_traits():
        unit = cast(_Unit, importlib.import_module(f"{_UNITS}.{name.replace('-', '_')}"))
        return unit.find(environment, table)
    if name in trait_names.from_trainers():
        return _find_in_trainers(name, environment)
    model = environment.get("model.name")
    family = families(model) if isinstance(model, str) else _Family()
    stated = environment.get("model.traits")
    if not isinstance(stated, Unknown) and name in (stated or ()):
        return TraitVerdict(True)
    of_file = name in trait_names.from_files()
    if of_file and not isinstance(stated, Unknown):
        return TraitVerdict(False)
    if name in family.weights:
        return TraitVerdict(True, presumed=True)
    by_import = name.startswith(_IMPORTS) and name in table("imported-names")["traits"]
    if by_import and (path := _imported(environment, table("imported-names")["traits"][name])):
        return TraitVerdict(True, facts=(path,))
    in_code = by_import or name in trait_names.from_code()
    if not in_code and not of_file:
        return _OPEN
    if not isinstance(stated, Unknown):
        return TraitVerdict(False)
    if name in family.traits:
        held = family.held_until(name) >= (day_of_report(environment) or date.max)
        return TraitVerdict(True) if held else _OPEN._replace(suspected=True)
    return TraitVerdict(False) if in_code and environment.get("model.remote_code") is False else _OPEN


def _imported(environment: Environment, names: Collection[str]) -> str | None:
    """The fact that a model's own code surely imports one of these names."""
    listed = environment.get("model.asks")
    sure = () if isinstance(listed, Unknown) else [each for each in listed or () if not each.get("conditions")]
    paths = (f"{each['target']}.{each.get('name', '')}" for each in sure if each["kind"] == "import")
    return next((f"model.asks.{path}" for path in paths if path in names), None)


def _find_in_trainers(name: str, environment: Environment) -> TraitVerdict:
    """What all of the user's scripts have is certain, and what one of several has is suspected."""
    suspected = environment.get("trainer.suspected")
    if not isinstance(suspected, Unknown) and name in (suspected or ()):
        return TraitVerdict(None, missing=("trainer.script",), suspected=True)
    traits = environment.get("trainer.traits")
    known = not isinstance(traits, Unknown)
    return TraitVerdict(name in (traits or ())) if known else TraitVerdict(None, missing=("trainer.traits",))


def _family(name: str, table: Table) -> _Family:
    """The published family of a model's name and what its own name adds."""
    from compatcheck.inference.model_families import rows_of

    rows = rows_of(name, table("model-families"))
    weights, traits = ([trait for row in rows for trait in row.get(kind, ())] for kind in ("weights", "traits"))
    return _Family(weights, traits, {trait: day for row in rows for trait, day in row.get("until", {}).items()})
