"""Several versions of one package in a lock: which of them the marker of each leaves where it will be installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.packages.names import normalised


class Locked(NamedTuple):
    """One version of a package; ``holds`` is None where nobody knows whether it is the one, as ``marker`` says."""

    name: str
    version: str
    at: Location
    holds: bool | None = True
    marker: str = ""


def facts_of(locked: Iterable[Locked]) -> Environment:
    """``distributions`` where one version is sure, else the reason; what does not apply is left out."""
    choices: dict[str, list[Locked]] = {}
    for each in locked:
        if each.holds is not False:
            choices.setdefault(normalised(each.name), []).append(each)
    versions: dict[str, str] = {}
    ranges: dict[str, str] = {}
    reasons: dict[str, str] = {}
    locations: dict[str, Location] = {}
    for name, found in choices.items():
        path = f"distributions.{name}"
        sure = [each for each in found if each.holds]
        locations[path] = (sure or found)[0].at
        distinct = {each.version for each in found}
        if sure and len({each.version for each in sure}) == 1 and sure[0].version:
            versions[name] = sure[0].version
        elif sure and not sure[0].version:
            ranges[name] = ""
            reasons[path] = f"{_file(sure[0])} has no version"
        elif sure and len(distinct) > 1:
            reasons[path] = (
                f"{_file(found[0])} contains {', '.join(sorted(distinct))}; it is unknown which of these applies"
            )
        else:
            listed = "; ".join(f"{each.version} where {each.marker}" for each in found)
            reasons[path] = f"{_file(found[0])} contains {listed}; it is unknown which of these applies"
    known = {"distributions": versions, "distributions_complete": False}
    return Environment({**known, **({"distribution_ranges": ranges} if ranges else {})}, reasons, locations)


def _file(locked: Locked) -> str:
    return os.path.basename(locked.at.file)
