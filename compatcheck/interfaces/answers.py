"""What rows of links ask of one release, and tables in which it counts like a release that they know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from packaging.version import Version

from compatcheck.interfaces.history import Table, is_in

LINKS, _INDEX = "links/", "interfaces/index"
Question = tuple[str, str, str]
"""The kind, the target and the name of a link."""
Answers = Mapping[Question, bool]
"""Whether a release gives what is asked; what nobody can tell from its text is not in it."""


def questions(table: Table, consumers: Mapping[str, Version], provider: str) -> tuple[Question, ...]:
    """What these releases ask of a package on the paths of a training run, each once."""
    found = (
        (kind, target, name)
        for consumer, release in consumers.items()
        for kind, target, name, _, _, _, asks, _, _ in table(f"{LINKS}{consumer}").get(provider, ())
        if is_in(release, asks.split())
    )
    return tuple(dict.fromkeys(found))


def amended(table: Table, read: Mapping[str, tuple[Version, Answers]]) -> Table:
    """The tables, in which releases that they lack count as read, and as their answers say."""

    def find(name: str) -> Mapping[str, Any]:
        found = table(name)
        if name == _INDEX:
            releases = found.get("releases", {})
            more = {
                package: _inserted(releases[package], read[package][0]) for package in releases.keys() & read.keys()
            }
            return {**found, "releases": {**releases, **more}}
        if not name.startswith(LINKS) or not read.keys() & found.keys():
            return found
        return {
            provider: list(_amended(rows, *read[provider])) if provider in read else rows
            for provider, rows in found.items()
        }

    return find


def _inserted(listed: str, release: Version) -> str:
    return " ".join(map(str, sorted({*map(Version, listed.split()), release})))


def _amended(rows: Iterable[list[str]], release: Version, answers: Answers) -> Iterator[list[str]]:
    for row in rows:
        kind, target, name, file, entry, conditions, asks, accepts, fails = row
        works = answers.get((kind, target, name))
        if works is None or works == is_in(release, accepts.split()):
            yield row
        elif works:
            yield [kind, target, name, file, entry, conditions, asks, f"{accepts} =={release}".strip(), fails]
        else:
            runs = " ".join(_without(accepts.split(), release))
            fails = f"{fails} =={release}" if fails else ""
            yield [kind, target, name, file, entry, conditions, asks, runs, fails]


def _without(runs: Iterable[str], release: Version) -> Iterator[str]:
    """The runs less one release: each that holds it is cut there."""
    for run in runs:
        if is_in(release, (run,)):
            yield f"{run},<{release}"
            yield f"{run},>{release}"
        else:
            yield run
