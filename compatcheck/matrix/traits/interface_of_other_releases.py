"""An error says that a release lacks a name, a parameter or an attribute which other releases of the package have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.interfaces.failures import Answer, answers, joined_runs
from compatcheck.interfaces.history import Interfaces, around, is_in
from compatcheck.language import marked
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._link_notes import link_note
from compatcheck.packages.interface_failures import from_fact
from compatcheck.packages.versions import final_release, parse_version

_FACT, _NAMES = "interface_errors", "missing_names"
WHY = marked("the releases that fit what is asked")
_WHAT = {
    "name": "{who} has no {name} in {target}; releases {runs} have it",
    "module": "{who} has no module {name}; releases {runs} have it",
    "member": "{who} has no attribute {name} of {target}; releases {runs} have it",
    "keyword": "{who} has no parameter {name} of {target}(); releases {runs} take it",
    "missing": "{who} requires {name} of {target}(); releases {runs} do not",
    "positional": "{who} takes fewer than {name} arguments of {target}() by place; releases {runs} take them",
    "override-keyword": "{who} gives {name} to {target}(), which does not take it; releases {runs} do not give it",
    "override-positional": "{who} gives {name} arguments to {target}(), which takes fewer; releases {runs} give fewer",
}


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain where the stated release is none of those that fit; open where no release is stated.

    A release that fits by the tables is passed over: then something else is at fault.
    """
    errors = _errors(environment)
    if errors is None:
        return TraitVerdict(None, missing=(_NAMES,))
    interfaces = Interfaces(table)
    certain: list[Occurrence] = []
    open_still: list[Occurrence] = []
    missing: dict[str, None] = {}
    versions = _versions(environment)
    for answer in _answers(errors, table, versions):
        release = versions.get(answer.package)
        if release is not None and _fits(release, answer, interfaces):
            continue
        note = link_note(table, answer.caller, answer.package, answer.name)
        occurrence = _occurrence(answer, versions, interfaces)._replace(note=note.text, source=note.source)
        (certain if release else open_still).append(occurrence)
        if release is None:
            missing[f"distributions.{answer.package}"] = None
    if certain:
        return TraitVerdict(True, tuple(certain), facts=(_FACT,))
    if open_still:
        return TraitVerdict(None, tuple(open_still), tuple(missing), facts=(_FACT,))
    return TraitVerdict(False)


def _errors(environment: Environment) -> Sequence[Mapping[str, object]] | None:
    """The errors that are stated, else the names that are said to be missing; None where neither is known."""
    errors, names = environment.get(_FACT), environment.get(_NAMES)
    if not isinstance(errors, Unknown):
        return errors or ()
    if isinstance(names, Unknown):
        return None
    return [{"error": "missing-name", "name": None, **each} for each in names or ()]


def _fits(release: Version, answer: Answer, interfaces: Interfaces) -> bool:
    """Whether a release is without the fault; of one that was not read, whether one beside it is."""
    beside = around(release, interfaces.releases(answer.package))
    return not beside or any(is_in(each, answer.accepts) for each in beside)


def _answers(
    errors: Sequence[Mapping[str, object]], table: Table, versions: Mapping[str, Version | None]
) -> Iterator[Answer]:
    for each in errors:
        failure = from_fact(each)
        named = dict.fromkeys(cast(Sequence[str], each.get("named", ())))
        if failure:
            yield from answers(failure, table, {**named, **versions})


def _versions(environment: Environment) -> dict[str, Version | None]:
    """The packages that are there, with their releases where these are known and no vendor's own."""
    ranges = dict.fromkeys(environment.section("distribution_ranges"))
    stated = {name: text for name, text in environment.section("distributions").items() if text}
    return {**ranges, **{name: final_release(text) for name, text in stated.items()}}


def _occurrence(answer: Answer, versions: Mapping[str, Version | None], interfaces: Interfaces) -> Occurrence:
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
        return Occurrence(f"{what}. {asker} asks for it.", packages, pins, other, WHY)
    told = f"{what}. {asker} asks for it; releases {' or '.join(silent)} of {answer.caller} do not."
    nearest = by_distance(silent, asking, callers)[0] if asking else silent[-1]
    return Occurrence(told, packages, pins, {answer.caller: nearest}, WHY)


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
