"""A release is known to demand another version of a package than the one stated, where no metadata was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.torch_builds import minor
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._declared import declared
from compatcheck.matrix.traits._requirements import excluded_pairs
from compatcheck.matrix.traits._start_up import ENDS, refusals
from compatcheck.packages.release_rows import Row, rows_of
from compatcheck.packages.versions import final_release, parse_version

_METADATA = "unmet_requirements"
_BY_FORCE = "installers refuse to install the two together unless forced"


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Leave open what was forced together, since many such pairs work; only what start-up code compares is certain.

    Where the installed metadata was read, `declared-requirement-unmet` knows, and of what one command is to install
    `requirements-exclude-each-other`. A build of a vendor or between two
    releases, and a release that was not looked up, are passed over.
    """
    if not isinstance(environment.get(_METADATA), Unknown):
        return TraitVerdict(False)
    distributions = environment.get("distributions")
    if isinstance(distributions, Unknown):
        return TraitVerdict(None, missing=(_METADATA,))
    releases = {name: release for name, text in (distributions or {}).items() if (release := final_release(text))}
    demands = {name: _between(declared(name, environment, table), releases) for name in sorted(releases)}
    refused = excluded_pairs(environment, table)
    found = tuple(
        (package, other, specifier, rows[other])
        for package, rows in demands.items()
        for other, (_first, _last, specifier, *_marker) in rows_of(releases[package], rows)
        if not _accepts(specifier, releases[other])
        and not _is_of_another_torch(package, other, releases, table)
        and (package, other) not in refused
    )
    certain = tuple(each for each in refusals(releases, table) if each[:2] not in refused)
    why = ENDS if certain else _BY_FORCE
    occurrences = tuple(
        _occurrence(package, other, specifier, runs, distributions, why)
        for package, other, specifier, runs in certain or found
    )
    return TraitVerdict(True, occurrences) if certain else TraitVerdict(None, occurrences, (_METADATA,))


def _between(rows: Mapping[str, Sequence[Row]], releases: Mapping[str, Version]) -> dict[str, Sequence[Row]]:
    return {other: listed for other, listed in rows.items() if other in releases}


def _accepts(specifier: str, version: Version) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(specifier).contains(version)


def _is_of_another_torch(package: str, other: str, releases: Mapping[str, Version], table: Table) -> bool:
    """Whether `built-for-another-torch` tells it."""
    runs = table("built-for-torch")["declared"].get(package, ()) if other == "torch" else ()
    wanted = [torch for first, last, torch in runs if Version(first) <= releases[package] <= Version(last)]
    return any(minor(torch) != minor(str(releases["torch"])) for torch in wanted)


def _occurrence(
    package: str, other: str, specifier: str, runs: Sequence[Row], distributions: Mapping[str, Any], why: str
) -> Occurrence:
    release, present = distributions[package], distributions[other]
    unmet = f"{package} {release} requires {other}{specifier}, but the environment has {present}"
    summary = f"{unmet}; {why}"
    there = parse_version(present) or Version("0")
    accepting = [(first, last) for first, last, demand, *_marker in runs if _accepts(demand, there)]
    instead = {package: f">={accepting[-1][0]},<={accepting[-1][1]}"} if accepting else {}
    return Occurrence(summary, (other, package), {other: specifier}, instead)
