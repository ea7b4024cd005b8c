"""Write matrix/tables/start-up-checks.toml: which versions of others a release refuses when it is imported.

    python tools/tables/start_up_checks.py FOLDER [PACKAGE...]

Without packages all that the table holds are read again; the rows of others stay. FOLDER holds archives of releases as
`release_sources` keeps them, ``<package>/<version>.zip``. Nothing of them is
imported or run: the modules that an import of the package reaches are followed on their syntax trees.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

sys.path.insert(0, str(Path(__file__).parents[2]))

from compatcheck.matrix.compile import read_toml
from tools.tables import _metadata, _toml
from tools.tables._statements import module_of
from tools.tables._version_checks import Demand, Module, read_module

_MATRIX = Path(__file__).parents[2] / "matrix"
TABLE = _MATRIX / "tables" / "start-up-checks.toml"
_HISTORY = TABLE.with_name("release-history.toml")
_GROUPS = ("switches", "told")
Row = Sequence[str]
STARTS = {"llamafactory": "llamafactory.hparams.parser"}
"""The module that a package's commands import, where the package itself is empty."""
SWITCHES = {"llamafactory": "DISABLE_VERSION_CHECK"}
"""The variable that turns the checks of a package off:
https://github.com/hiyouga/LLaMA-Factory/blob/v0.9.3/src/llamafactory/extras/misc.py
"""
_TABLE = "dependency_versions_table"
_NOTHING = Module(frozenset(), (), frozenset(), {})
Known = dict[tuple[str, int, int], Module]
"""Modules by name and content."""
_WHAT = """The versions of others that releases compare when they are imported, which ends in an exception unless they
are met: the first and the last release of a run, and what is demanded. What is compared for some models, settings or
platforms only is left out. `switches` names the variable that turns the checks of a package off, and `told` holds rows
of which entries tell every pair."""
_SOURCES = (
    "https://pypi.org/",
    "https://github.com/huggingface/transformers/blob/v4.57.0/src/transformers/dependency_versions_check.py",
)


def render(folder: Path, packages: Iterable[str], kept: Mapping[str, Any]) -> str:
    """The table as TOML: the rows of these packages anew, and those that it held of others."""
    rows = _joined({name: found for name, found in kept.items() if name not in _GROUPS}, kept.get("told", {}))
    for package in packages:
        rows[package] = _rows(package, folder / package)
        print(package, file=sys.stderr, flush=True)
    told: dict[str, dict[str, list[Row]]] = {}
    others: dict[str, dict[str, list[Row]]] = {}
    for package, by_other in sorted(rows.items()):
        for other, listed in by_other.items():
            entries = _entries(package, other)
            for row in listed:
                group = (
                    told
                    if entries and all(_is_told(pair, entries) for pair in _refused(package, other, row))
                    else others
                )
                group.setdefault(package, {}).setdefault(other, []).append(row)
    parts = [_toml.header(_WHAT, "python tools/tables/start_up_checks.py FOLDER [PACKAGE...]", _SOURCES)]
    parts.append(_toml.section("switches", SWITCHES))
    parts += [_toml.section(name, found) for name, found in others.items()]
    return "".join([*parts, *(_toml.section(f"told.{name}", found) for name, found in told.items())])


def _joined(*groups: Mapping[str, Any]) -> dict[str, dict[str, list[Row]]]:
    rows: dict[str, dict[str, list[Row]]] = {}
    for group in groups:
        for package, by_other in group.items():
            for other, listed in by_other.items() if isinstance(by_other, dict) else ():
                rows.setdefault(package, {}).setdefault(other, []).extend(listed)
    for by_other in rows.values():
        for listed in by_other.values():
            listed.sort(key=lambda row: Version(row[0]))
    return rows


def _entries(package: str, other: str) -> list[tuple[SpecifierSet, SpecifierSet]]:
    """The releases of two packages that entries call affected together, whatever else is there."""
    found = []
    for path in sorted(path for name in (package, other) for path in (_MATRIX / name).glob("CC-*.toml")):
        entry = read_toml(path)
        for conditions in () if "withdrawn" in entry else entry["affected"]:
            stated = conditions.get("distributions", {})
            if stated.keys() == {package, other} and conditions.keys() <= {"distributions", "environ"}:
                found.append((SpecifierSet(stated[package]), SpecifierSet(stated[other])))
    return found


def _refused(package: str, other: str, row: Row) -> Iterator[tuple[str, str]]:
    """The pairs of releases that a row refuses."""
    history = read_toml(_HISTORY)["releases"]
    releases = [each for each in history[package] if Version(row[0]) <= Version(each) <= Version(row[1])]
    refused = [each for each in history[other] if not SpecifierSet(row[2]).contains(each)]
    yield from product(releases, refused)


def _is_told(pair: tuple[str, str], entries: Iterable[tuple[SpecifierSet, SpecifierSet]]) -> bool:
    return any(one.contains(pair[0]) and another.contains(pair[1]) for one, another in entries)


def _rows(package: str, folder: Path) -> dict[str, list[Row]]:
    found: dict[Version, Mapping[str, str]] = {}
    known: Known = {}
    for path in sorted(folder.glob("*.zip")):
        try:
            version = Version(path.stem)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            found[version] = demands(package, path, known)
    others = sorted({other for checked in found.values() for other in checked})
    return {
        other: [*_metadata.runs({each: checked.get(other, "") for each, checked in found.items()})] for other in others
    }


def demands(package: str, path: Path, known: Known | None = None) -> dict[str, str]:
    """What an import of one release demands, by the other package; ``known`` keeps modules from release to release."""
    with zipfile.ZipFile(path) as archive:
        release = _Release(package, archive, {} if known is None else known)
        clauses: dict[str, set[str]] = defaultdict(set)
        for other, clause in release.checks():
            clauses[other].add(clause)
    kept = {other: found for other, found in clauses.items() if other not in (package, "python")}
    return {other: ",".join(sorted(map(str, SpecifierSet(",".join(found))))) for other, found in kept.items()}


class _Release:
    """The modules of one release."""

    def __init__(self, package: str, archive: zipfile.ZipFile, known: Known) -> None:
        self._start = STARTS.get(package, module_of(package))
        self._archive = archive
        self._known = known
        top = self._start.partition(".")[0]
        files = (each for each in archive.infolist() if each.filename.startswith(f"{top}/"))
        self._files = {_module(each.filename): each for each in files if each.filename.endswith(".py")}
        self._table = next((self._text(each) for each in self._files if each.endswith(f".{_TABLE}")), "")

    def checks(self) -> Iterator[Demand]:
        """What an import of the package compares, as far as it surely reaches it."""
        waiting, seen = [self._start], {self._start}
        while waiting:
            name = waiting.pop()
            if name not in self._files:
                continue
            module = self._module(name)
            yield from module.checks
            for called in module.calls:
                where, _, function = called.rpartition(".")
                source = where or name
                yield from self._module(source).functions.get(function, ()) if source in self._files else ()
            for imported in module.imports:
                parents = {imported.rsplit(".", at)[0] for at in range(imported.count(".") + 1)}
                waiting += parents - seen
                seen |= parents

    def _module(self, name: str) -> Module:
        file = self._files[name]
        key = (name, file.CRC, file.file_size)
        if name.endswith(".dependency_versions_check"):
            return _parsed(self._text(name), name, False, self._table)
        if key not in self._known:
            self._known[key] = _parsed(self._text(name), name, file.filename.endswith("/__init__.py"))
        return self._known[key]

    def _text(self, name: str) -> str:
        return self._archive.read(self._files[name]).decode("utf-8", "replace")


def _parsed(text: str, name: str, is_package: bool, table: str = "") -> Module:
    try:
        return read_module(text, name, is_package=is_package, table=table)
    except (SyntaxError, ValueError, RecursionError):
        return _NOTHING


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    given = parser.parse_args()
    kept = read_toml(TABLE) if TABLE.exists() else {}
    packages = given.packages or sorted(_joined({each: kept[each] for each in kept.keys() - _GROUPS}, kept["told"]))
    TABLE.write_text(render(given.folder, packages, kept), encoding="utf-8")


if __name__ == "__main__":
    main()
