"""A list pins a release that has no file for the stated Python or platform."""

from __future__ import annotations

from compatcheck.environment import Environment
from compatcheck.inference.inferred import Table
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import Requirement, listed
from compatcheck.packages.known_releases import bounds, platform_of, standing

_WHY = marked("the nearest release with a file for it")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain where the Python is stated and the release exists; a list for no stated Python is not judged.

    The platform of this machine counts only together with a Python: without one nobody knows where the list is
    installed.
    """
    python = environment.get("python")
    if not isinstance(python, str):
        return TraitVerdict(None, missing=("python",))
    places = [python, *filter(None, [platform_of(environment.section("platform"))])]
    found = (
        occurrence
        for each in listed(environment)
        if not each.elsewhere and (each.pin is None or standing(each.name, each.pin, table) == "exists")
        if (occurrence := next(filter(None, (_occurrence(each, place, table) for place in places)), None))
    )
    occurrences = tuple(found)
    return TraitVerdict(bool(occurrences), occurrences)


def _occurrence(required: Requirement, place: str, table: Table) -> Occurrence | None:
    limits = bounds(required.name, place, table)
    if limits.newest is not None and _excludes(required, f"<={limits.newest}"):
        wanted, bound = limits.newest, _("the newest with one is {version}")
    elif limits.oldest is not None and _excludes(required, f">={limits.oldest}"):
        wanted, bound = limits.oldest, _("the oldest with one is {version}")
    else:
        return None
    summary = _("{requirement} has no file for {place}; {bound}").format(
        requirement=required.spelled,
        place=_("Python {version}").format(version=place) if place[0].isdigit() else place,
        bound=bound.format(version=wanted),
    )
    return Occurrence(summary, (required.name,), {required.name: f"=={wanted}"}, why=_WHY, location=required.at)


def _excludes(required: Requirement, bound: str) -> bool:
    """Whether none of the versions that are asked for lies within the bound."""
    from packaging.specifiers import SpecifierSet

    specifier = f"=={required.pin.partition('+')[0]}" if required.pin else required.specifier
    return SpecifierSet(specifier).is_disjoint(SpecifierSet(bound))
