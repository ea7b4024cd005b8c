"""The requirements that the user's files list, by the command that installs them, and which exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.inference.inferred import Table
from compatcheck.language import marked
from compatcheck.matrix.traits._declared import declared
from compatcheck.packages.known_releases import releases
from compatcheck.packages.release_rows import Row, rows_of
from compatcheck.packages.versions import final_release, pinned

RESOLVED = "unsolvable"
"""The fact that a resolver decides: what it was asked about and found no versions for."""
ASK = marked("--resolve checks this with uv")
"""What decides an open one, for its summary: nobody can state it."""


class Requirement(NamedTuple):
    """One line of a list: ``pin`` is the only version that it admits, where it is one.

    A ``constraint`` limits what others require. ``elsewhere`` tells that another index, or a file, is named for it.
    """

    name: str
    specifier: str
    pin: str | None
    at: Location | None
    constraint: bool
    elsewhere: bool

    @property
    def spelled(self) -> str:
        """The name with the version, or with the range."""
        return f"{self.name} {self.pin}" if self.pin else f"{self.name}{self.specifier}"


class Exclusion(NamedTuple):
    """``demanding`` and ``excluded`` cannot be installed by one command.

    Every release that ``demanding`` admits requires ``demands`` of the other; ``open_above`` tells that it admits
    releases later than those that were looked up.
    """

    demanding: Requirement
    excluded: Requirement
    demands: tuple[str, ...]
    open_above: bool


def commands(environment: Environment) -> list[list[Requirement]]:
    """What each command installs, in the order of the files; what is no PEP 440 specifier is left out."""
    listed = environment.get("requirements")
    found: dict[str, list[Requirement]] = {}
    if not isinstance(listed, Unknown):
        for each in filter(_is_readable, listed or ()):
            found.setdefault(each["command"], []).append(_requirement(each))
    return list(found.values())


def listed(environment: Environment) -> Iterator[Requirement]:
    """Every requirement of every command."""
    for command in commands(environment):
        yield from command


def exclusions(environment: Environment, table: Table) -> list[Exclusion]:
    """The pairs that their own declared requirements keep apart, of those that one command installs.

    Only what excludes whatever is released later, or all that was looked up, is found. Two ranges are left to a
    resolver.
    """
    return [
        exclusion
        for command in commands(environment)
        for demanding in command
        if not demanding.constraint and (rows := declared_by(demanding, environment, table))
        for excluded in command
        if excluded.name in rows and (demanding.pin or excluded.pin)
        if (exclusion := _exclusion(demanding, excluded, rows, table))
    ]


def declared_by(demanding: Requirement, environment: Environment, table: Table) -> Mapping[str, Sequence[Row]]:
    """What the releases of a package require, by the name of the other.

    Of a pin without what the package compares when it is imported: entries tell that.
    """
    at_start = {} if demanding.pin else table("declared-requirements")["at_start"].get(demanding.name, {})
    return {**declared(demanding.name, environment, table), **at_start}


def excluded_pairs(environment: Environment, table: Table) -> set[tuple[str, str]]:
    """The names of each such pair that is certain, the demanding one first."""
    found = exclusions(environment, table)
    return {(each.demanding.name, each.excluded.name) for each in found if not each.open_above}


def _exclusion(
    demanding: Requirement, excluded: Requirement, rows: Mapping[str, Sequence[Row]], table: Table
) -> Exclusion | None:
    admitted = [final_release(demanding.pin)] if demanding.pin else _every_release(demanding, table)
    demands = [_demand(release, excluded.name, rows) for release in admitted]
    if not demands or not all(demand and _is_disjoint(demand, excluded) for demand in demands):
        return None
    open_above = demanding.pin is None and admits(demanding, f">{releases(demanding.name, table)[-1]}")
    return Exclusion(demanding, excluded, tuple(dict.fromkeys(filter(None, demands))), open_above)


def _demand(release: Version | None, other: str, rows: Mapping[str, Sequence[Row]]) -> str | None:
    """What a release requires of the other package, where it was looked up and requires something."""
    found = [row[2] for _, row in rows_of(release, {other: rows[other]})] if release else []
    return found[0] if len(found) == 1 else None


def _every_release(demanding: Requirement, table: Table) -> list[Version]:
    """The releases that a range admits; none where earlier ones than those that are listed are among them."""
    from packaging.specifiers import SpecifierSet

    known = releases(demanding.name, table)
    if not known or demanding.elsewhere or admits(demanding, f"<{known[0]}"):
        return []
    return list(SpecifierSet(demanding.specifier).filter(known))


def admits(requirement: Requirement, specifier: str) -> bool:
    """Whether a requirement may be met within another range."""
    from packaging.specifiers import SpecifierSet

    return not (SpecifierSet(requirement.specifier) & SpecifierSet(specifier)).is_unsatisfiable()


def _is_disjoint(demand: str, other: Requirement) -> bool:
    """Whether no version at all meets both."""
    from packaging.specifiers import SpecifierSet

    if other.pin is not None:
        return final_release(other.pin) is not None and not SpecifierSet(demand).contains(other.pin)
    return SpecifierSet(demand).is_disjoint(SpecifierSet(other.specifier))


def _is_readable(fact: Mapping[str, Any]) -> bool:
    from packaging.specifiers import SpecifierSet

    try:
        SpecifierSet(fact["specifier"]).contains("1")
    except ValueError:
        return False
    return True


def _requirement(fact: Mapping[str, Any]) -> Requirement:
    at = Location(fact["file"], fact.get("line")) if fact.get("file") else None
    specifier = fact["specifier"]
    flags = (bool(fact.get(flag)) for flag in ("constraint", "elsewhere"))
    return Requirement(fact["name"], specifier, pinned(specifier), at, *flags)
