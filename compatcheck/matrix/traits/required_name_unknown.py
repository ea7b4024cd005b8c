"""A list names a package that nobody knows, spelled almost like one of the field."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Table
from compatcheck.language import gettext as _
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import ASK, RESOLVED, Requirement, listed
from compatcheck.packages.known_names import similar


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Open until a resolver was asked: a name can have been registered since."""
    found = [
        (each, meant)
        for each in listed(environment)
        if not each.elsewhere and (meant := similar(each.name, table)) is not None
    ]
    asked = environment.get(RESOLVED)
    if not found or asked == []:
        return TraitVerdict(False)
    if isinstance(asked, Unknown):
        still = (_occurrence(each, meant, table) for each, meant in found)
        return TraitVerdict(None, tuple(each._replace(summary=f"{each.summary} ({_(ASK)})") for each in still))
    reasons = " ".join(each["reason"] for each in asked or ())
    refused = tuple(_occurrence(each, meant, table) for each, meant in found if each.name in reasons.split())
    return TraitVerdict(bool(refused), refused)


def _occurrence(requirement: Requirement, meant: str, table: Table) -> Occurrence:
    summary = _("no package was called {name} on {day}; did you mean {meant}?").format(
        day=table("similar-names")["reviewed"], name=requirement.name, meant=meant
    )
    return Occurrence(summary, (requirement.name,), location=requirement.at)
