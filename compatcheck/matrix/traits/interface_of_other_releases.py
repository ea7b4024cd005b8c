"""An error says that a release lacks a name, a parameter or an attribute which other releases of the package have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.interfaces.history import Interfaces, around, is_in
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._answered import occurrence
from compatcheck.matrix.traits._link_notes import link_note, reaches
from compatcheck.packages.versions import final_release

if TYPE_CHECKING:
    from compatcheck.interfaces.failures import Answer

_FACT, _NAMES = "interface_errors", "missing_names"


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
        answer = _with_noted_caller(answer, table, versions)
        note = link_note(table, answer.caller, answer.package, answer.name)
        found = occurrence(answer, versions, interfaces)._replace(
            note=note.text, source=note.source, remedies=note.remedies
        )
        (certain if release else open_still).append(found)
        if release is None:
            missing[f"distributions.{answer.package}"] = None
    if certain:
        return TraitVerdict(True, tuple(certain), facts=(_FACT,))
    if open_still:
        return TraitVerdict(None, tuple(open_still), tuple(missing), facts=(_FACT,))
    return TraitVerdict(False)


def _with_noted_caller(answer: Answer, table: Table, versions: Mapping[str, Version | None]) -> Answer:
    """The answer with the package that notes say to ask for it, where just one that is there does."""
    if answer.caller or answer.kind.startswith("override-"):
        return answer
    name = answer.name.rpartition(".")[2]
    asking: dict[str, list[str]] = {}
    for reach in reaches(table):
        is_about = reach.provider == answer.package and name in reach.names and reach.package in versions
        if is_about and _asks(versions[reach.package], reach.asks):
            asking.setdefault(reach.package, []).append(reach.asks)
    if len(asking) != 1:
        return answer
    package, runs = next(iter(asking.items()))
    return answer._replace(caller=package, asks=tuple(run for run in runs if run not in ("", "present")))


def _asks(release: Version | None, run: str) -> bool:
    return release is None or run in ("", "present") or is_in(release, (run,))


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
    from compatcheck.interfaces.failures import answers
    from compatcheck.packages.interface_failures import from_fact

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
