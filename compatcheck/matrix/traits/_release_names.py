"""Which releases of a package have a name, by the table that was read from all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Location
from compatcheck.language import marked
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence
from compatcheck.packages.versions import contains, parse_range

_ITSELF, _PERHAPS = ".", "?"
"""The row of a module that some releases do not have at all, and the mark of a run that may have the names."""

WHY = marked("the releases that have the name")


class NameHistory(NamedTuple):
    """A name that somebody asks for, or a whole module, and the runs of releases that have it.

    Those that ``perhaps`` have it were not read, or what their module holds is not told by its text.
    """

    package: str
    module: str
    name: str | None
    runs: tuple[str, ...]
    perhaps: tuple[str, ...] = ()
    location: Location | None = None

    def lacks(self, release: Version) -> bool:
        return not any(contains(parse_range(run), release) for run in (*self.runs, *self.perhaps))

    def is_older(self, release: Version) -> bool:
        """Whether the release is older than each that has the name."""
        return all(bound.version > release for run in self.runs for bound in parse_range(run))

    def pins(self, release: Version | None) -> dict[str, str]:
        """The first run of releases newer than this one that has the name, else the last of older ones."""
        newer = (run for run in self.runs if release and all(each.version > release for each in parse_range(run)))
        return {self.package: next(newer, self.runs[-1])}


def histories(names: Sequence[Mapping[str, Any]], table: Table, *, with_module: bool = False) -> Iterator[NameHistory]:
    """Those of the names that some releases have and others do not; of any other name nothing is known.

    A name of which nothing is known comes and goes with its module, if ``with_module``. The table is large, and read
    only where a name is asked for.
    """
    known = table("release-names") if names else {}
    for each in names:
        module, name = each["module"], each.get("name")
        package = known["modules"].get(module.partition(".")[0])
        at = Location(each["file"], each["line"]) if each.get("file") else None
        rows = {having: listed.split() for having, listed in known["names"].get(package, {}).get(module, {}).items()}
        is_listed = any(name in listed for listed in rows.values())
        row = name if name and (is_listed or not with_module) else _ITSELF
        for having, listed in rows.items():
            if row in listed:
                runs = having.split()
                perhaps = (f"<{known['read'][package][0]}", *(run[1:] for run in runs if run[:1] == _PERHAPS))
                yield NameHistory(package, module, name, tuple(run for run in runs if run[:1] != _PERHAPS), perhaps, at)


def occurrence(asked: NameHistory, release: Version | None) -> Occurrence:
    """What is told of a name that the release lacks, or the one that ran where none is stated."""
    what = f"no {asked.name} in {asked.module}" if asked.name else f"no module {asked.module}"
    who = f"{asked.package} {release}" if release else f"the {asked.package} that ran"
    summary = f"{who} has {what}; releases {' or '.join(asked.runs)} have it."
    return Occurrence(summary, (asked.package,), asked.pins(release), why=WHY, location=asked.location)
