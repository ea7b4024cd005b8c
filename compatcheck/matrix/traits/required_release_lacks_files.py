"""A list pins a release that has no file for the stated Python or platform."""

from __future__ import annotations

from packaging.version import Version

from compatcheck.environment import Environment
from compatcheck.inference.inferred import Table
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import Requirement, listed
from compatcheck.packages.known_releases import bounds, platform_of, releases, standing
from compatcheck.packages.required_python import accepted_pythons, takes_python
from compatcheck.packages.versions import final_release

_WHY = marked("the nearest release with a file for this Python or platform")
_WHY_NEWEST = marked("the newest release that supports this Python")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain where the Python is stated and the release exists; a list for no stated Python is not judged.

    The platform of this machine counts only together with a Python: without one nobody knows where the list is
    installed.
    """
    python = environment.get("python")
    if not isinstance(python, str):
        return TraitVerdict(None, missing=("python",))
    places = [python, *filter(None, [platform_of(environment.section("platform"))])]
    occurrences = []
    for each in listed(environment):
        if not each.elsewhere and (each.pin is None or standing(each.name, each.pin, table) == "exists"):
            lacking = filter(None, (_occurrence(each, place, table) for place in places))
            occurrence = next(lacking, None) or _of_another_python(each, python, table)
            occurrences += [occurrence] if occurrence else []
    return TraitVerdict(bool(occurrences), tuple(occurrences))


def _occurrence(required: Requirement, place: str, table: Table) -> Occurrence | None:
    limits = bounds(required.name, place, table)
    if limits.newest is not None and _excludes(required, f"<={limits.newest}"):
        wanted, bound = limits.newest, _("the newest release with a file is {version}")
    elif limits.oldest is not None and _excludes(required, f">={limits.oldest}"):
        wanted, bound = limits.oldest, _("the oldest release with a file is {version}")
    else:
        return None
    summary = _("{requirement} has no file for {place}; {bound}").format(
        requirement=required.spelled,
        place=_("Python {version}").format(version=place) if place[0].isdigit() else place,
        bound=bound.format(version=wanted),
    )
    return Occurrence(summary, (required.name,), {required.name: f"=={wanted}"}, why=_WHY, location=required.at)


def _of_another_python(required: Requirement, python: str, table: Table) -> Occurrence | None:
    """A pinned release whose own metadata does not take the Python."""
    release = final_release(required.pin)
    accepted = accepted_pythons(required.name, release, table) if release else ""
    if release is None or not accepted or takes_python(accepted, python):
        return None
    summary = _("{requirement} requires Python {accepted}, but the environment has {python}").format(
        requirement=required.spelled, accepted=accepted, python=python
    )
    newest = _newest_for(required.name, python, table)
    pins = {required.name: f"=={newest}"} if newest else {}
    return Occurrence(summary, (required.name,), pins, why=_WHY_NEWEST, location=required.at)


def _newest_for(name: str, python: str, table: Table) -> Version | None:
    """The newest release that takes the Python: an earlier one may do so for want of an upper bound alone."""
    accepted = ((each, accepted_pythons(name, each, table)) for each in reversed(releases(name, table)))
    return next((each for each, text in accepted if text and takes_python(text, python)), None)


def _excludes(required: Requirement, bound: str) -> bool:
    """Whether none of the versions that are asked for lies within the bound."""
    from packaging.specifiers import SpecifierSet

    specifier = f"=={required.pin.partition('+')[0]}" if required.pin else required.specifier
    return SpecifierSet(specifier).is_disjoint(SpecifierSet(bound))
