"""A list asks for a release that its project withdrew (yanked), which installers take for an exact pin alone."""

from __future__ import annotations

from packaging.version import Version

from compatcheck.environment import Environment
from compatcheck.inference.inferred import Table
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import Requirement, admits, listed
from compatcheck.packages.known_releases import nearest, releases, standing

_WHY = marked("the next release that was not withdrawn")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain for a range that only withdrawn releases meet, which is refused.

    Open for a pin: it can be installed, and what it was withdrawn for need not concern this user.
    """
    required = [each for each in listed(environment) if not each.elsewhere]
    refused = [(each, gone) for each in required if not each.pin and (gone := _only_withdrawn(each, table))]
    if refused:
        return TraitVerdict(True, tuple(_occurrence(each, gone, table) for each, gone in refused))
    pinned = [each for each in required if each.pin and standing(each.name, each.pin, table) == "withdrawn"]
    occurrences = tuple(_occurrence(each, each.pin or "", table) for each in pinned)
    return TraitVerdict(None, occurrences) if pinned else TraitVerdict(False)


def _only_withdrawn(required: Requirement, table: Table) -> str | None:
    """The last withdrawn release that a range admits, where it admits no other."""
    from packaging.specifiers import SpecifierSet

    gone, known = table("installable-releases")["withdrawn"].get(required.name), releases(required.name, table)
    if not gone or not known or any(admits(required, each) for each in (f"<{known[0]}", f">{known[-1]}")):
        return None
    specifier = SpecifierSet(required.specifier)
    meeting = [each for each in sorted(gone, key=Version) if each in specifier]
    return meeting[-1] if meeting and not any(each in specifier for each in known) else None


def _occurrence(required: Requirement, gone: str, table: Table) -> Occurrence:
    reason = table("installable-releases")["withdrawn"][required.name].get(gone)
    summary = _("{package} {version} was withdrawn by its project").format(package=required.name, version=gone)
    summary += f": {reason}" if reason else ""
    after = nearest(required.name, gone, table)[-1]
    return Occurrence(summary, (required.name,), {required.name: f"=={after}"}, why=_WHY, location=required.at)
