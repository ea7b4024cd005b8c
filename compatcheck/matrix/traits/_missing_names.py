"""An error says that a release lacks a name which other releases have, by the table of their names alone."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._release_names import histories, occurrence
from compatcheck.packages.versions import final_release

_FACT = "missing_names"


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain where the stated release is none of those; open where no release is stated.

    A release that has the name by the table is passed over: then something else shadows or hides it. So is a build of a
    vendor, and a name of which no release is known.
    """
    names = environment.get(_FACT)
    if isinstance(names, Unknown):
        return TraitVerdict(None, missing=(_FACT,))
    certain: list[Occurrence] = []
    open_still: list[Occurrence] = []
    missing: dict[str, None] = {}
    for asked in histories(names or (), table):
        stated = environment.get(f"distributions.{asked.package}")
        if isinstance(stated, Unknown):
            open_still.append(occurrence(asked, None))
            missing[f"distributions.{asked.package}"] = None
        elif (release := final_release(stated)) and asked.lacks(release):
            certain.append(occurrence(asked, release))
    if certain:
        return TraitVerdict(True, tuple(certain), facts=(_FACT,))
    return TraitVerdict(None if open_still else False, tuple(open_still), tuple(missing), facts=(_FACT,))
