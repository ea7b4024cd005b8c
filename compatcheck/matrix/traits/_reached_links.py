"""Links that only some runs get to: the releases of the provider by the tables, the runs by the notes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment
from compatcheck.inference.infer import bounds_of
from compatcheck.inference.inferred import NOTHING, Inferred
from compatcheck.inference.required_packages import required
from compatcheck.interfaces.history import Interfaces, is_in, joined_runs
from compatcheck.matrix._traits import Table, trait_finder
from compatcheck.matrix.matching.match import (
    ManyEnvironments,
    Occurrence,
    TraitFinder,
    Verdict,
    any_of,
    is_reported,
    match_table,
)
from compatcheck.matrix.traits._answered import occurrence
from compatcheck.matrix.traits._link_notes import Reach, reaches
from compatcheck.packages.versions import final_release

if TYPE_CHECKING:
    from compatcheck.interfaces.failures import Answer


class ReachedLink(NamedTuple):
    """A link that fails: whether that is certain, and what is missing and what speaks for it where it is not."""

    is_certain: bool
    missing: tuple[str, ...]
    facts: tuple[str, ...]
    occurrence: Occurrence


def reached_links(environment: Environment, table: Table, *, of_packages: bool) -> Iterator[ReachedLink]:
    """Each noted link that fails beside the stated releases, in the runs that get to it.

    Those between two packages, or those that a model's own code or the user's has to one.
    """
    there = environment.once("named packages", partial(_named_packages, environment, table))
    traits = trait_finder(table)
    inferred = NOTHING if isinstance(environment, ManyEnvironments) else bounds_of(environment, table)
    for number, reach in enumerate(reaches(table)):
        if bool(reach.package) is not of_packages or (reach.package or reach.provider) not in there:
            continue
        found = environment.once(f"reach {number}", partial(_verdict, reach, environment, traits, inferred))
        if not is_reported(found):
            continue
        stated = environment.section("distributions")
        versions = {name: final_release(text) for name, text in stated.items() if text}
        for answer in _answers(table, reach.line, reach.provider, reach.package):
            asks = () if reach.asks in ("", "present") else (reach.asks,)
            shown = occurrence(answer._replace(asks=asks), versions, Interfaces(table))
            if reach.provider in stated and not stated[reach.provider]:
                shown = shown._replace(summary=f"{reach.provider} is not installed. {shown.summary}")
            note = reach.note
            shown = shown._replace(note=note.text, source=note.source, remedies=note.remedies)
            yield ReachedLink(found.holds is True and not reach.is_reported, found.missing, found.paths, shown)


def refused_releases(table: Table, line: str, provider: str, package: str, within: str) -> tuple[str, ...]:
    """The releases that the tables refuse for a link that ends in ``line``, as few ranges."""
    interfaces = Interfaces(table)
    runs = (_refusing(answer, within, interfaces) for answer in _answers(table, line, provider, package))
    return tuple(dict.fromkeys(chain.from_iterable(runs)))


def _named_packages(environment: Environment, table: Table) -> frozenset[str]:
    """The packages that are installed, asked for in some range, or required."""
    installed = (name for name, text in environment.section("distributions").items() if text)
    return frozenset((*installed, *environment.section("distribution_ranges"), *required(environment, table)))


def _verdict(reach: Reach, environment: Environment, traits: TraitFinder, inferred: Inferred) -> Verdict:
    """Whether the provider refuses what is asked, in a run that gets there."""
    refused = (*reach.refused, "absent") if reach.may_be_absent else reach.refused
    package = {f"distributions.{reach.package}": reach.asks} if reach.package else {}
    known: dict[str, Verdict] = {}
    return any_of(
        any_of(
            match_table(
                {f"distributions.{reach.provider}": provider, **package, **run}, environment, traits, known, inferred
            )
            for run in reach.runs
        )
        for provider in refused
    )


@cache
def _answers(table: Table, line: str, provider: str, package: str) -> tuple[Answer, ...]:
    """What the tables say to the error that a link ends in."""
    from compatcheck.interfaces.failures import answers
    from compatcheck.packages.interface_failures import read_failure

    failure = read_failure([line])
    found = answers(failure, table, {provider: None}, {provider, package} - {""}) if failure else ()
    return tuple(each._replace(caller=package) for each in found if each.package == provider)


def _refusing(answer: Answer, within: str, interfaces: Interfaces) -> tuple[str, ...]:
    """The releases that were read and do not give what is asked, as few ranges."""
    releases, bounds = interfaces.releases(answer.package), (within,) if within else ()

    def refuses(version: Version) -> bool:
        return not is_in(version, answer.accepts) and (not bounds or is_in(version, bounds))

    runs = joined_runs(releases, refuses)
    first = f">={Version(releases[0])}"
    return tuple(run if run.startswith(">=") else ",".join(filter(None, (first, run))) for run in runs)
