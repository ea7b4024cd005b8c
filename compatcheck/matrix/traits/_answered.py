"""What a release lacks, as an occurrence that names the releases of both packages that fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from packaging.version import Version

from compatcheck.interfaces.history import Interfaces, is_in, joined_runs
from compatcheck.language import marked
from compatcheck.matrix.matching.match import Occurrence
from compatcheck.packages.versions import parse_version

if TYPE_CHECKING:
    from compatcheck.interfaces.failures import Answer

WHY = marked("the releases that fit the requirements")
_WHAT = {
    "name": "{who} has no {name} in {target}; releases {runs} have it",
    "module": "{who} has no module {name}; releases {runs} have it",
    "member": "{who} has no attribute {name} of {target}; releases {runs} have it",
    "keyword": "{who} has no parameter {name} of {target}(); releases {runs} take it",
    "missing": "{who} requires {name} of {target}(); releases {runs} do not",
    "positional": "{who} takes fewer than {name} positional arguments in {target}(); releases {runs} take them",
    "override-keyword": "{who} passes {name} to {target}(), which does not take it; releases {runs} do not pass it",
    "override-positional": "{who} passes {name} arguments to {target}(), which takes fewer; releases {runs} pass fewer",
}


def occurrence(answer: Answer, versions: Mapping[str, Version | None], interfaces: Interfaces) -> Occurrence:
    release, asking = versions.get(answer.package), versions.get(answer.caller)
    who = f"{answer.package} {release}" if release else f"the {answer.package} that ran"
    what = _WHAT[answer.kind].format(who=who, name=answer.name, target=answer.target, runs=" or ".join(answer.accepts))
    packages = (answer.package, answer.caller) if answer.caller else (answer.package,)
    releases = interfaces.releases(answer.package)
    first, *others = by_distance(answer.accepts, release, releases)
    pins, other = {answer.package: first}, {answer.package: others[0]} if others else {}
    if not answer.caller:
        return Occurrence(f"{what}.", packages, pins, other, WHY)
    asker = f"{answer.caller} {asking}" if asking else answer.caller
    callers = interfaces.releases(answer.caller)
    silent = joined_runs(callers, lambda each: not is_in(each, answer.asks)) if answer.asks else ()
    if not silent:
        return Occurrence(f"{what}. {asker} requires it.", packages, pins, other, WHY)
    told = f"{what}. {asker} requires it; releases {' or '.join(silent)} of {answer.caller} do not."
    nearest = by_distance(_after(silent, asking, callers) or silent, asking, callers)[0] if asking else silent[-1]
    return Occurrence(told, packages, pins, {answer.caller: nearest}, WHY)


def _after(runs: Sequence[str], release: Version, releases: Sequence[str]) -> list[str]:
    """The runs that begin after a release: what no longer asks mends more than what did not ask yet."""
    return [run for run in runs if all(Version(each) > release for each in releases if is_in(Version(each), (run,)))]


def by_distance(runs: Sequence[str], release: Version | None, releases: Sequence[str]) -> list[str]:
    """The runs, the one with the fewest releases between it and this one first; else the one of the most releases."""
    known = [version for each in releases if (version := parse_version(each))]
    at = sum(each < release for each in known) if release else 0

    def order(run: str) -> int:
        inside = [place for place, version in enumerate(known) if is_in(version, (run,))]
        if not inside or release is None:
            return -len(inside)
        return min(abs(place - at) for place in (inside[0], inside[-1]))

    return sorted(runs, key=order)
