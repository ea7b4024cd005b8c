"""Write matrix/tables/import-failures.toml: which releases cannot be imported beside which others, for want of a name.

    python tools/tables/lay_out.py FOLDER [PACKAGE...]
    python tools/tables/import_failures.py FOLDER [PACKAGE...]

FOLDER holds releases as installers lay them out, each in FOLDER/<distribution>/<version>; it keeps what was found, so
that a later run follows new releases alone. The rows of packages that are not in FOLDER, or not among those named, stay
as the table has them. Nothing is imported: what import statements take is read by the follower of `check --imports`.
Where a range begins and ends, its releases were followed beside each other, once with nothing else installed and once
with everything else.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

sys.path.insert(0, str(Path(__file__).parents[2]))

from compatcheck.matrix.compile import read_toml
from compatcheck.packages.versions import contains, is_range, parse_range
from tools.tables import _pairwise, _toml
from tools.tables._pairwise import ALONE, CROWDED, Demand, Failure
from tools.tables._statements import NOT_FOLLOWED, PARTS, PROVIDERS, STATEMENTS, module_of

_USUAL = {"numpy", "packaging", "yaml", "tqdm", "requests", "filelock", "regex", "typing_extensions"}
_STACK = 256 << 20
_STRIDE = 4
"""Of so many releases of a provider one is asked for a name in any case: a name seldom goes and comes again sooner."""
MATRIX = Path(__file__).parents[2] / "matrix"
TABLE = MATRIX / "tables" / "import-failures.toml"
_RUN = "python tools/tables/lay_out.py FOLDER && python tools/tables/import_failures.py FOLDER"
SOURCES = ("https://pypi.org/", "https://docs.python.org/3/reference/import.html")
_WHAT = """What releases import from others that do not have it: the first and the last release of a run, the releases
of the other package, the name that is missing, and the first statement of a training run that ends there. Those that
were followed stand first; one between two of them is taken as they are. A row that an entry tells names it."""


class Told(NamedTuple):
    """Of an entry that speaks of two distributions: their ranges, and whether it speaks of some trainings only."""

    entry: str
    ranges: dict[str, str]
    partly: bool

    def speaks_of(self, versions: Mapping[str, str], failure: Failure) -> bool:
        """Whether the entry tells it; one about some trainings tells no more than a part."""
        within = all(contains(parse_range(self.ranges[name]), Version(each)) for name, each in versions.items())
        return within and (not self.partly or failure.statement in PARTS)


class Cell(NamedTuple):
    """Releases of one package that all fail beside some of another, with what, and the entry that tells it."""

    first: str
    last: str
    low: str
    high: str
    failure: Failure
    told: str = ""


def releases(folder: Path, package: str) -> list[str]:
    """The final releases of a package that are at hand, in order."""
    found = []
    for path in (folder / package).glob("*"):
        try:
            version = Version(path.name)
        except InvalidVersion:
            continue
        if not version.is_prerelease and str(version) == path.name:
            found.append(version)
    return [str(each) for each in sorted(found)]


def surely(folder: Path) -> set[str]:
    """The modules of what a release demands without conditions, and of what everything here builds on."""
    found = set(_USUAL)
    for path in folder.glob("*.dist-info/METADATA"):
        header = HeaderParser().parsestr(path.read_text(encoding="utf-8", errors="replace"))
        for line in header.get_all("Requires-Dist", []):
            try:
                requirement = Requirement(line)
            except InvalidRequirement:
                continue
            if requirement.marker is None:
                found.add(module_of(canonicalize_name(requirement.name)))
    return found


def demanded(folder: Path, package: str) -> dict[str, list[Demand]]:
    """What each release may ask of the providers; kept in the folder."""
    kept = folder / "_demands" / f"{package}.json"
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    of = {module_of(each) for each in PROVIDERS if each != package}
    for version in releases(folder, package):
        if version not in known:
            place = folder / package / version
            known[version] = _pairwise.demands(place, STATEMENTS[package], surely(place), of)
    _keep(kept, known)
    return {version: [Demand(*each) for each in known[version]] for version in releases(folder, package)}


def lacking(
    folder: Path, provider: str, version: str, wanted: Sequence[Demand], taken: set[Demand] | None = None
) -> set[Demand]:
    """Which of the names a release of a provider does not have, or is taken not to have; kept in the folder."""
    kept = folder / "_lacking" / provider / f"{version}.json"
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {"asked": [], "missing": []}
    asked = {Demand(*each) for each in known["asked"]}
    new = [each for each in wanted if each not in asked]
    if new:
        place = folder / provider / version
        missing = _pairwise.lacking(place, new, surely(place)) if taken is None else taken.intersection(new)
        known = {"asked": [*known["asked"], *new], "missing": [*known["missing"], *sorted(missing, key=str)]}
        _keep(kept, known)
    return {Demand(*each) for each in known["missing"]}


def _keep(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(value), encoding="utf-8")
    part.rename(path)


class Pair:
    """One package beside one provider, release by release."""

    def __init__(self, folder: Path, package: str, provider: str) -> None:
        self.folder, self.package, self.provider = folder, package, provider
        self.surely: set[str] = set()
        self.known: dict[tuple[str, str, bool], Failure | None] = {}

    def failure(self, version: str, other: str, crowded: bool = False) -> Failure | None:
        """What surely fails; followed once."""
        key = version, other, crowded
        if key not in self.known:
            place, beside = self.folder / self.package / version, self.folder / self.provider / other
            there = (surely(place) | surely(beside) | self.surely) - {module_of(self.provider), module_of(self.package)}
            setting = CROWDED if crowded else ALONE
            lines = STATEMENTS[self.package]
            self.known[key] = _pairwise.failure(self.package, place, beside, lines, there, setting)
            self.surely |= there
        return self.known[key]

    def cells(self, asked: Mapping[str, Sequence[Demand]], missing: Mapping[str, set[Demand]]) -> Iterator[Cell]:
        """The rectangles of releases that fail."""
        others = sorted(missing, key=Version)
        profiles = {
            version: tuple(frozenset(missing[other].intersection(of_release)) for other in others)
            for version, of_release in asked.items()
        }
        ordered = sorted(profiles, key=Version)
        for _, group in itertools.groupby(ordered, key=profiles.__getitem__):
            versions = list(group)
            if any(profiles[versions[0]]):
                yield from self._of_group(versions, others, profiles[versions[0]])

    def _of_group(
        self, versions: Sequence[str], others: Sequence[str], profile: Sequence[frozenset[Demand]]
    ) -> Iterator[Cell]:
        """What holds for the first release of a group and for the last one; one by one where these differ."""
        first, last = versions[0], versions[-1]
        found = self._of_release(first, others, profile)
        if first != last and any(self.failure(last, high) != failure for _, high, failure in found):
            yield from self._of_group(versions[: len(versions) // 2], others, profile)
            yield from self._of_group(versions[len(versions) // 2 :], others, profile)
            return
        for low, high, failure in found:
            yield Cell(first, last, low, high, failure)

    def _of_release(
        self, version: str, others: Sequence[str], profile: Sequence[frozenset[Demand]]
    ) -> list[tuple[str, str, Failure]]:
        runs: list[tuple[str, str, Failure]] = []
        for names, group in itertools.groupby(zip(others, profile), key=lambda item: item[1]):
            releases = [other for other, _ in group]
            for low, high, failure in self._runs(version, releases) if names else ():
                if runs and runs[-1][2] == failure and others.index(runs[-1][1]) + 1 == others.index(low):
                    runs[-1] = (runs[-1][0], high, failure)
                else:
                    runs.append((low, high, failure))
        return runs

    def _runs(self, version: str, others: Sequence[str]) -> Iterator[tuple[str, str, Failure]]:
        """Of releases that lack the same names, those beside which the import fails: a guard may spare one end.

        The first release is followed with nothing else installed, the last one with everything else.
        """
        low, high = self.failure(version, others[0]), self.failure(version, others[-1], crowded=True)
        if low == high:
            if low is not None:
                yield others[0], others[-1], low
            return
        if len(others) == 1 or (low is not None and self.failure(version, others[0], crowded=True) != low):
            print("open in company", self.package, version, self.provider, others[0], low, high, file=sys.stderr)
            return
        yield from self._runs(version, others[: len(others) // 2])
        yield from self._runs(version, others[len(others) // 2 :])


def rows(folder: Path, package: str, provider: str) -> list[Cell]:
    """What is found for a pair; kept in the folder with the releases of which it is found."""
    kept = folder / "_rows" / f"{package}--{provider}.json"
    of = [releases(folder, package), releases(folder, provider)]
    known: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {"of": None}
    if known["of"] != of:
        module = module_of(provider)
        asked = {
            version: [each for each in of_release if each.module.partition(".")[0] == module]
            for version, of_release in demanded(folder, package).items()
        }
        names = set(itertools.chain.from_iterable(asked.values()))
        missing = {version: lacking(folder, provider, version, []) & names for version in of[1]}
        known = {"of": of, "cells": list(Pair(folder, package, provider).cells(asked, missing)) if names else []}
        _keep(kept, known)
        known = json.loads(kept.read_text(encoding="utf-8"))
    cells = known["cells"]
    return [
        Cell(first, last, low, high, Failure(Demand(*demand), statement))
        for first, last, low, high, (demand, statement), *_ in cells
    ]


def render(folder: Path, packages: Sequence[str], before: Mapping[str, Any] | None = None) -> str:
    """The table as TOML; the rows of other packages are those of the table as it was before."""
    told, table = _told_by_entries(), before or {}
    others = set(table) - {"reviewed", "sources", "releases", *packages}
    listed = _Listed(folder, packages, table)
    found: dict[str, dict[str, list[Cell]]] = {}
    for package, provider in itertools.product(sorted({*packages, *others}), sorted(PROVIDERS)):
        if package == provider:
            continue
        cells = _cells_of(table[package].get(provider, [])) if package in others else rows(folder, package, provider)
        if package in others and cells:
            listed.ensure_followed(package, provider)
        speaking = [each for each in told if set(each.ranges) == {package, provider}]
        kept = _marked(cells, speaking, {name: listed.of(name) for name in (package, provider)}) if cells else []
        if kept:
            found.setdefault(package, {})[provider] = kept
    named = sorted({*found, *itertools.chain.from_iterable(found.values())})
    parts = [
        _toml.header(_WHAT, _RUN, SOURCES),
        _toml.section("releases", {name: " ".join(listed.of(name)) for name in named}),
    ]
    for package, of_package in found.items():
        lines = {provider: [_row(cell) for cell in cells] for provider, cells in of_package.items()}
        parts.append(_toml.section(package, lines))
    return "".join(parts)


class _Listed:
    """The releases that the table lists: of what is followed those at hand, of others those it listed before, too."""

    def __init__(self, folder: Path, packages: Sequence[str], table: Mapping[str, Any]) -> None:
        self.folder, self.packages, self.before = folder, packages, table.get("releases", {})

    def of(self, name: str) -> list[str]:
        at_hand = releases(self.folder, name)
        before = [] if name in self.packages else self.before.get(name, "").split()
        by_version = {Version(each): each for each in [*at_hand, *before]}
        return [by_version[each] for each in sorted(by_version)]

    def ensure_followed(self, package: str, provider: str) -> None:
        """Rows that stay say nothing of a release that was not there when they were made."""
        new = set(map(Version, releases(self.folder, provider))).difference(map(Version, self.before[provider].split()))
        if new:
            raise SystemExit(f"lay out {package}: its rows are not of {provider} {', '.join(map(str, sorted(new)))}")


def _cells_of(lines: Sequence[Sequence[str]]) -> list[Cell]:
    """The cells of rows as the table has them, without what entries tell of them."""
    cells = []
    for first, last, between, name, statement, *_ in lines:
        bounds = [bound.lstrip("<>=") for bound in between.split(",")]
        cells.append(Cell(first, last, bounds[0], bounds[-1], Failure(Demand(name, None), statement)))
    return cells


def _marked(cells: Sequence[Cell], told: Sequence[Told], releases: Mapping[str, Sequence[str]]) -> list[Cell]:
    """The cells, cut where what entries tell begins or ends."""
    (package, versions), (provider, others) = releases.items()
    parts = []
    for cell in cells:
        for version in _between(versions, cell.first, cell.last):
            for other in _between(others, cell.low, cell.high):
                both = {package: version, provider: other}
                entry = next((each.entry for each in told if each.speaks_of(both, cell.failure)), "")
                parts.append(Cell(version, version, other, other, cell.failure, entry))
    return _down(_across(parts, others), versions)


def _between(ordered: Sequence[str], first: str, last: str) -> Sequence[str]:
    return ordered[ordered.index(first) : ordered.index(last) + 1]


def _across(cells: Sequence[Cell], others: Sequence[str]) -> list[Cell]:
    """Cells of one release of the package, of which one takes up where the one before ends, as one."""
    joined: list[Cell] = []
    for cell in cells:
        before = joined[-1] if joined else cell
        ends = before is not cell and before._replace(low=cell.low, high=cell.high) == cell
        if ends and others.index(before.high) + 1 == others.index(cell.low):
            joined[-1] = before._replace(high=cell.high)
        else:
            joined.append(cell)
    return joined


def _down(cells: Sequence[Cell], versions: Sequence[str]) -> list[Cell]:
    """Cells of the same ranges, of which one takes up where another ends, as one."""
    joined: list[Cell] = []
    for cell in cells:
        before = next((at for at, each in enumerate(joined) if each[2:] == cell[2:]), None)
        if before is not None and versions.index(joined[before].last) + 1 == versions.index(cell.first):
            joined[before] = joined[before]._replace(last=cell.last)
        else:
            joined.insert(0, cell)
    return sorted(joined, key=lambda each: (Version(each.first), Version(each.low)))


def _row(cell: Cell) -> list[str]:
    between = f"=={cell.low}" if cell.low == cell.high else f">={cell.low},<={cell.high}"
    name = ".".join(filter(None, cell.failure.demand))
    row = [cell.first, cell.last, between, name, cell.failure.statement]
    return [*row, cell.told] if cell.told else row


def _told_by_entries() -> list[Told]:
    found = []
    for path in sorted(MATRIX.glob("*/CC-*.toml")):
        entry = read_toml(path)
        tells = entry["impact"] == "import-fail" and "withdrawn" not in entry
        for conditions in entry["affected"] if tells else ():
            ranges = {name: each for name, each in conditions.get("distributions", {}).items() if is_range(each)}
            others = {*conditions, *conditions.get("training", ())} - {"distributions", "training", "framework"}
            if len(ranges) == 2 and len(ranges) == len(conditions["distributions"]):
                found.append(Told(entry["id"], ranges, bool(others)))
    return found


def followed(folder: Path, packages: Sequence[str], providers: Sequence[str] = PROVIDERS) -> None:
    """Follow all there is to follow, two at a time."""
    with ProcessPoolExecutor(2, initializer=_prepare) as pool:
        asked = list(pool.map(_deep, itertools.repeat(demanded), itertools.repeat(folder), packages))
        wanted = {demand for of_package in asked for of_release in of_package.values() for demand in of_release}
        for provider in providers:
            module = module_of(provider)
            names = sorted((each for each in wanted if each.module.partition(".")[0] == module), key=str)
            versions = releases(folder, provider) if names else []
            _ask(pool, folder, provider, versions, names)
            pairs = [(package, provider) for package in packages if package != provider]
            for done in [pool.submit(_deep, rows, folder, *pair) for pair in pairs]:
                done.result()


def _ask(pool: Executor, folder: Path, provider: str, versions: Sequence[str], names: Sequence[Demand]) -> None:
    """What each release lacks: every few are followed, and between two that differ more, until all differences are."""
    known: dict[int, set[Demand]] = {}
    left = sorted({*range(0, len(versions), _STRIDE), *range(len(versions))[-1:]})
    while left:
        of_provider = map(itertools.repeat, (lacking, folder, provider))
        found = pool.map(_deep, *of_provider, [versions[at] for at in left], itertools.repeat(names))
        known.update((at, missing.intersection(names)) for at, missing in zip(left, found))
        pairs = itertools.pairwise(sorted(known))
        left = [(low + high) // 2 for low, high in pairs if high - low > 1 and known[low] != known[high]]
    for low, high in itertools.pairwise(sorted(known)):
        for version in versions[low + 1 : high]:
            lacking(folder, provider, version, names, known[low])


def _prepare() -> None:
    sys.setrecursionlimit(60_000)
    threading.stack_size(_STACK)


def _deep(function, *arguments):  # type: ignore[no-untyped-def]
    """Call in a thread with a stack as deep as chains of imports are long."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)))
    thread.start()
    thread.join()
    return results[0]


if __name__ == "__main__":
    where, *chosen = sys.argv[1:]
    at_hand = [name for name in STATEMENTS if name not in NOT_FOLLOWED and releases(Path(where), name)]
    followed(Path(where), chosen or at_hand)
    TABLE.write_text(render(Path(where), chosen or at_hand, read_toml(TABLE)), encoding="utf-8")
