"""The environment with other versions of torch and of what is trained with it, as maps around where it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from compatcheck import matrix
from compatcheck.advice.search import cost
from compatcheck.environment import Environment
from compatcheck.inference.torch_builds import backend_of, driver_needed, minor, runtime_of
from compatcheck.packages.releases import minors
from compatcheck.project.overlay import OF_TORCH
from compatcheck.results.findings import Report, Status, VersionMap

_COLUMNS, _ROWS = "torch", ("transformers", "deepspeed")
_MOST_MAPS = 2
_MOST_COLUMNS, _MOST_ROWS = 9, 11
FACTS_OF_FILES = (
    *("requirements", "unsolvable", "unmet_requirements", "unresolved_imports", "distribution_problems", "target"),
)
"""What files say of the versions at hand alone."""
_COMPANIONS: Mapping[str, tuple[str, ...]] = {
    "torch": ("torchvision", "torchaudio", "torchtext", "triton", "pytorch-triton", "xformers"),
    "transformers": ("tokenizers", "huggingface-hub"),
}
"""What has to move with a package, so that the version at hand says nothing about another release of it."""

Cell = Mapping[str, Status]


def with_maps(report: Report, known: matrix.Matrix) -> Report:
    """The report with a map for the packages that the ways out speak of; they also say where to go."""
    bad = report.bad
    versions = _versions(report.judged.view)
    asked = [next((remedy.pins for remedy in finding.remedies if remedy.pins), {}) for finding in bad]
    found = {finding.id: finding.status for finding in reversed(report.findings)}
    names = [name for pins in asked for name in pins]
    drawn = _maps(report.environment, known, names, versions, {}, found)
    return report._replace(maps=tuple(_mark_advised(each, asked) if bad else each for each in drawn))


def maps_of_pins(
    environment: Environment, known: matrix.Matrix, before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[VersionMap, ...]:
    """The maps for an environment whose versions are pinned, from those there were before."""
    moved = [name for name, version in after.items() if before.get(name, version) != version]
    return tuple(_maps(environment, known, moved, before, after))


def _versions(environment: Environment) -> dict[str, str]:
    return {name: version for name, version in environment.section("distributions").items() if version}


def _maps(
    environment: Environment,
    known: matrix.Matrix,
    first: Iterable[str],
    here: Mapping[str, str],
    advised: Mapping[str, str],
    found: Cell | None = None,
) -> Iterator[VersionMap]:
    """The maps of torch beside the packages that come first, and beside those that most is known of."""
    histories = known.table("release-history")["releases"]
    drawable = here.keys() & histories.keys()
    names = [name for name in dict.fromkeys((*first, *_ROWS)) if {_COLUMNS, name} <= drawable and name != _COLUMNS]
    for name in names[:_MOST_MAPS]:
        pair = (_COLUMNS, name)
        goal = tuple(advised[each] for each in pair) if {*pair} <= advised.keys() else None
        columns, rows = (
            _nearby_releases(histories[each], [here[each], *([advised[each]] if goal else [])], most)
            for each, most in zip(pair, (_MOST_COLUMNS, _MOST_ROWS))
        )
        if not (columns and rows):
            continue
        entries: dict[str, tuple[str, str]] = {}
        cells = tuple(
            tuple(_cell(environment, known, here, dict(zip(pair, (column, row))), found, entries) for column in columns)
            for row in rows
        )
        at = (here[_COLUMNS], here[name])
        yield VersionMap(pair, columns, rows, cells, entries, at, goal)  # type: ignore[arg-type]


def _nearby_releases(history: Mapping[str, Any], kept: Sequence[str], most: int) -> tuple[str, ...]:
    """The newest patches of the minor releases around some versions, and these themselves, the newest first.

    Empty for an invalid version.
    """
    from packaging.version import Version

    try:
        wanted = {Version(each).public: each for each in kept}
    except ValueError:
        return ()
    days = [(version, str(history[version])) for version in sorted(history, key=Version)]
    others = [version for _, version in minors(days) if version not in wanted]
    ordered = sorted((*wanted, *others), key=Version, reverse=True)
    places = [ordered.index(each) for each in wanted]
    room = max(most - (max(places) - min(places) + 1), 0)
    first = max(min(min(places) - (room + 1) // 2, len(ordered) - most), 0)
    shown = ordered[first : max(first + most, max(places) + 1)]
    return tuple(wanted.get(each, each) for each in shown)


def _cell(
    environment: Environment,
    known: matrix.Matrix,
    here: Mapping[str, str],
    versions: Mapping[str, str],
    found: Cell | None,
    entries: dict[str, tuple[str, str]],
) -> Cell:
    """The statuses of the entries that speak of the environment with two versions."""
    judged = _with_versions(environment, known, versions)
    statuses: dict[str, Status] = {}
    for finding in matrix.judge(known, judged).findings:
        entries[finding.id] = (finding.title, finding.impact)
        statuses.setdefault(finding.id, finding.status)
    if found is not None and all(here[name] == version for name, version in versions.items()):
        return {entry: status for entry, status in found.items() if entry in entries and status != "refuted"}
    return statuses


def _with_versions(environment: Environment, known: matrix.Matrix, versions: Mapping[str, str]) -> Environment:
    """The environment with these versions; what hangs on the ones there were is gone."""
    before = _versions(environment)
    changed = [name for name, version in versions.items() if before.get(name) != version]
    if not changed:
        return environment
    rest = environment.without(*FACTS_OF_FILES)
    along = {each for name in changed for each in _COMPANIONS.get(name, ())}
    kept = {name: version for name, version in before.items() if name not in along}
    if _COLUMNS in changed:
        kept = {name: version for name, version in kept.items() if not name.startswith("nvidia-")}
        version, runtime = _build(environment, known, versions[_COLUMNS])
        versions = {**versions, _COLUMNS: version}
        rest = rest.without(*OF_TORCH)
        rest = rest.with_fact("cuda.runtime", runtime) if runtime else rest
    return rest.with_fact("distributions", {**kept, **versions})


def _build(environment: Environment, known: matrix.Matrix, version: str) -> tuple[str, str | None]:
    """The build of a release that one would install here: the label at hand where there is one, else one that runs."""
    table = known.table("torch-cuda-builds")
    builds: Sequence[str] = table["builds"].get(minor(version), ())
    own = _versions(environment).get(_COLUMNS, "")
    label, runtime = backend_of(own), runtime_of({_COLUMNS: own})
    if "+" not in version and label and (not label.startswith("cu") or runtime in builds):
        return f"{version}+{label}", runtime if isinstance(runtime, str) else None
    usual = table["default"].get(minor(version))
    offered = [each for each in (usual, *reversed(builds)) if each]
    runs = (each for each in offered if not isinstance(driver_needed(environment, each, known.table), str))
    return version, next(runs, usual)


def _mark_advised(drawn: VersionMap, asked: Iterable[Mapping[str, str]]) -> VersionMap:
    """The map with the nearest cell that the ways out ask for and of which nothing bad is known."""
    demands = [pins for pins in asked if not pins.keys().isdisjoint(drawn.names)]
    clean = [
        (sum(map(cost, drawn.here, place)), "possible" in cell.values(), at, place)
        for at, (place, cell) in enumerate(_cells_with_versions(drawn))
        if place != drawn.here and not _is_bad(cell) and all(_meets(pins, drawn.names, place) for pins in demands)
    ]
    return drawn._replace(advised=min(clean)[-1]) if clean and demands else drawn


def _cells_with_versions(drawn: VersionMap) -> Iterator[tuple[tuple[str, str], Cell]]:
    for row, cells in zip(drawn.rows, drawn.cells):
        for column, cell in zip(drawn.columns, cells):
            yield (column, row), cell


def _is_bad(cell: Cell) -> bool:
    return bool({"confirmed", "affected"} & {*cell.values()})


def _meets(pins: Mapping[str, str], names: Collection[str], place: Sequence[str]) -> bool:
    return all(matrix.within(pins[name], version) for name, version in zip(names, place) if pins.get(name))
