"""A release is there whose own metadata does not take the Python that it is there with."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.language import gettext as _
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import listed
from compatcheck.packages.required_python import PYTHON, accepted_pythons, lowest_python, takes_python
from compatcheck.packages.versions import final_release


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain of a Python below the lowest one that is taken; open of one that is newer, which often works.

    What a list requires is left to `required-release-lacks-files`.
    """
    python, distributions = environment.get(PYTHON), environment.get("distributions")
    if not isinstance(python, str) or isinstance(distributions, Unknown):
        return TraitVerdict(None, missing=() if isinstance(python, str) else (PYTHON,))
    required = {each.name for each in listed(environment)}
    certain: list[Occurrence] = []
    possible: list[Occurrence] = []
    for name in sorted((distributions or {}).keys() - required):
        release = final_release(distributions[name])
        accepted = accepted_pythons(name, release, table) if release else ""
        if accepted and not takes_python(accepted, python):
            occurrence = _occurrence(name, distributions[name], accepted, python)
            (certain if _is_too_old(python, accepted) else possible).append(occurrence)
    if certain:
        return TraitVerdict(True, tuple(certain))
    return TraitVerdict(None if possible else False, tuple(possible))


def _is_too_old(python: str, accepted: str) -> bool:
    lowest = lowest_python(accepted)
    return lowest is not None and not takes_python(f">={lowest}", python)


def _occurrence(name: str, version: str, accepted: str, python: str) -> Occurrence:
    summary = _("{package} {version} requires Python {accepted}, but the environment has {python}").format(
        package=name, version=version, accepted=accepted, python=python
    )
    return Occurrence(summary, (name,))
