"""A list pins a release that does not exist on the public package index."""

from __future__ import annotations

from compatcheck.environment import Environment
from compatcheck.inference.inferred import Table
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import ASK, Requirement, listed
from compatcheck.packages.known_releases import nearest, standing

_WHY = marked("the nearest release that exists")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain where the whole list of releases was read; one newer than that list, or perhaps withdrawn, stays open.

    What comes from another index or from a file is not judged.
    """
    pins = [each for each in listed(environment) if each.pin and not each.elsewhere]
    found = [(each, standing(each.name, each.pin or "", table)) for each in pins]
    certain = [_occurrence(each, table) for each, state in found if state == "missing"]
    if certain:
        return TraitVerdict(True, tuple(certain))
    still = [(each, state) for each, state in found if state in ("newer", "unlisted")]
    occurrences = tuple(_occurrence(each, table, state) for each, state in still)
    return TraitVerdict(None, occurrences) if still else TraitVerdict(False)


def _occurrence(pin: Requirement, table: Table, state: str = "missing") -> Occurrence:
    near = nearest(pin.name, pin.pin or "", table)
    said = {
        "missing": _("{package} {version} does not exist; the nearest releases are {near}"),
        "newer": _("{package} {version} is newer than every release up to {day}; the newest release then was {near}"),
        "unlisted": _("{package} {version} does not exist, or was withdrawn; the nearest releases are {near}"),
    }[state]
    day = table("release-history")["reviewed"]
    summary = said.format(package=pin.name, version=pin.pin, near=_(" and ").join(near), day=day)
    summary += "" if state == "missing" else f" ({_(ASK)})"
    pins = {} if state == "newer" else {pin.name: f"=={near[0]}"}
    return Occurrence(summary, (pin.name,), pins, why=_WHY, location=pin.at)
