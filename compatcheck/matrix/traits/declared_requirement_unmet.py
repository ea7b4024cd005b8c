"""A distribution declares a requirement that the installed set does not meet (what ``pip check`` reports)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._start_up import ENDS, is_refused
from compatcheck.packages.names import normalised
from compatcheck.packages.versions import final_release

_NAME_AND_SPECIFIER = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*\(?([^;)]*)")


def find(environment: Environment, table: Table) -> TraitVerdict:
    unmet = environment.get("unmet_requirements")
    if isinstance(unmet, Unknown):
        return TraitVerdict(None, missing=("unmet_requirements",))
    return TraitVerdict(bool(unmet), tuple(_occurrence(each, table) for each in unmet or ()))


def _occurrence(unmet: Mapping[str, str | None], table: Table) -> Occurrence:
    requirement = unmet["requirement"] or ""
    match = _NAME_AND_SPECIFIER.match(requirement)
    name, specifier = (match[1], match[2].strip()) if match else (requirement, "")
    seen = f"{unmet['installed']} is installed" if unmet.get("installed") else "it is not installed"
    summary = f"{unmet['distribution']} {unmet.get('version') or ''} requires {name}{specifier}, but {seen}"
    required = normalised(name)
    release, version = final_release(unmet.get("version")), final_release(unmet.get("installed"))
    package = unmet["distribution"] or ""
    if release and version and is_refused(package, release, required, version, table):
        summary += f"; {ENDS}"
    return Occurrence(summary, (required, package), {required: specifier})
