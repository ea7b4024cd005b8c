"""Write matrix/interfaces and matrix/links: what releases define, and what they ask of each other.

    python -m tools.tables.interfaces FOLDER [--no-fetch] [--links] [PACKAGE...]

FOLDER holds archives of releases, as release_sources.py keeps them; it is run first for what is new. Each text is read
once, on its syntax tree, and what was read is kept beside the archives. What a release asks is taken from where a
training run surely gets to (_reach.py), and held against every release of the package that is asked. What none of them
refuses, or all of them, is left out.

With packages named, only those are read. What they ask of any other is held against the table of that package: imports
are looked up there, and rows of anything else stay as they were. With --links their own tables stay too.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.interfaces.conditions import AVAILABLE, FAILS, distribution
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.interfaces.links import ABSENT
from compatcheck.interfaces.release import Release
from compatcheck.interfaces.signature import BASE, parse, problem
from compatcheck.interfaces.summary import FORMAT, Ask
from compatcheck.matrix.compile import read_toml
from compatcheck.matrix.loading import read_source_table
from tools.tables import release_sources
from tools.tables._absent import Undeclared
from tools.tables._interface_packages import near_of, owners, packages, tops_of
from tools.tables._names import NEAR, Names, is_aside, rows
from tools.tables._reach import Walk, asked, self_calls
from tools.tables._read_releases import Kept, releases, versions_kept

_AT_ONCE = 2
_NEW = timedelta(days=200)
"""For so long a release is one that the authors of others have at hand."""
_HIGH = 3
"""Modules with more dots lie deep."""
MATRIX = Path(__file__).parents[2] / "matrix"
INDEX = MATRIX / "interfaces" / "index.json"
Key = tuple[str, str, str, int, tuple[str, ...]]
"""What tells one ask from another, whoever asks: kind, target, name, places and keywords."""


class Asked(NamedTuple):
    """Where one package asks for something: the file, what must be installed, and the entry that leads there."""

    key: Key
    file: str
    conditions: tuple[str, ...]
    entry: str


def gather(folder: Path, package: str) -> dict[str, Any]:
    """What every release of a package asks of the others; kept, and only made again for new releases."""
    place = folder / f"{package}.asks"
    known: dict[str, Any] = {"form": FORM, "releases": {}, "asks": {}}
    if place.is_file():
        kept = pickle.loads(place.read_bytes())
        known = kept if kept["form"] == FORM else known
    versions = versions_kept(folder, package)
    new = [version for version in versions if str(version) not in known["releases"]]
    if not new:
        return known
    own_tops = tops_of(package)
    others = {top for other in packages() if other != package for top in tops_of(other)}.difference(own_tops)
    undeclared = Undeclared(folder, package)
    kept = Kept(folder, package)
    before: dict[bytes, Any] = {}
    for version in new:
        kept.read(version)
        release = Release(_of_package(kept.modules(version, before), package))
        if not release.modules:
            continue
        reached = Walk(release, package).run()
        found: dict[Asked, int] = {}
        optional = _optional(release)
        for ask, where in asked(release, reached, package):
            if "?" in ask.conditions:
                continue
            file = f"{where.module.replace('.', '/')}.py"
            if ask.target.partition(".")[0] in others:
                key = (ask.kind, ask.target, ask.name, ask.places, ask.keywords)
                found.setdefault(Asked(key, file, ask.conditions, where.entry), ask.line)
            absent = undeclared.distribution(version, ask, own_tops)
            if absent and absent not in optional:
                key = (ABSENT, ask.target.partition(".")[0], absent, 0, ())
                found.setdefault(Asked(key, file, ask.conditions, where.entry), ask.line)
        known["releases"][str(version)] = len(reached)
        for each in found:
            known["asks"].setdefault(each, []).append(str(version))
    place.write_bytes(pickle.dumps(known))
    return known


FORM = (FORMAT, 13)


def _optional(release: Release) -> set[str]:
    """The distributions that a release can do without, as it has functions that say whether they are there."""
    names = (name for read in release.modules.values() for name in read.functions)
    return {distribution(told[1]) for name in names if (told := AVAILABLE.fullmatch(name))}


def _of_package(modules: Mapping[str, Any], package: str) -> dict[str, Any]:
    tops = tops_of(package)
    return {name: module for name, module in modules.items() if name.partition(".")[0].rstrip("!") in tops}


class Definitions:
    """Of one package, release by release: the names of modules, how things are called, what classes have."""

    def __init__(self) -> None:
        self.names = Names()
        self.signatures: dict[str, list[tuple[int, str]]] = {}
        self.members: dict[str, dict[str, list[int]]] = {}
        self.classes: dict[str, list[int]] = {}
        self.bases: dict[str, dict[str, None]] = {}
        self.homes: dict[str, dict[str, None]] = {}
        self.needs: dict[str, dict[str, dict[str, list[int]]]] = {}
        """By module and by the distributions that must be installed, the names that are there only then."""
        self.packages: dict[str, None] = {}
        """Packages near the top, from which people import."""

    def add(self, version: Version, release: Release, top: str) -> None:
        at = len(self.names.releases)
        self.names.add(version, release.names)
        defined: dict[str, list[str]] = {}
        for module, read in release.modules.items():
            if module.count(".") <= _HIGH:
                self.packages[module.rpartition(".")[0]] = None
            if not is_aside(module):
                for name, needed in read.needs.items():
                    by = self.needs.setdefault(module, {}).setdefault(" ".join(needed), {})
                    by.setdefault(name, []).append(at)
                for name in (*read.functions, *read.classes):
                    if "." not in name:
                        defined.setdefault(name, []).append(module)
        for name, modules in defined.items():
            first = modules[0]
            if len(modules) > 1:
                found = release.named(top, name)
                first = found.module if found.module in modules else ""
            for module in modules:
                key = name if module == first else f"{module}:{name}"
                self._define(at, release, module, name, key)

    def _define(self, at: int, release: Release, module: str, name: str, key: str) -> None:
        read = release.modules[module]
        self.homes.setdefault(key, {})[module] = None
        if name in read.functions:
            self._sign(at, key, read.functions[name])
            return
        known = read.classes[name]
        self._sign(at, key, release.constructor(module, name))
        self.classes.setdefault(key, []).append(at)
        for base in release.bases(module, name):
            if base.kind in ("class", "foreign"):
                self.bases.setdefault(key, {})[base.name or base.module] = None
        held = self.members.setdefault(key, {})
        for member in dict.fromkeys((*known.methods, *known.attributes, *known.properties)):
            if not member.startswith("__"):
                held.setdefault(member, []).append(at)
        for method, signature in known.methods.items():
            if not method.startswith("__") or method == "__call__":
                words = signature.split()
                self._sign(at, f"{key}.{method}", "?" if "?" in words else " ".join(words[1:]))

    def _sign(self, at: int, key: str, signature: str) -> None:
        self.signatures.setdefault(key, []).append((at, signature))

    def rows(self, near: int) -> Iterator[tuple[str, Any]]:
        """The rows of the table: what differs between releases.

        Of what is the same in all only how the classes of a core package are made: others are derived from them.

        Of callables and classes those that a module of at most ``near`` parts has.
        """
        runs = self.names.runs
        for module, by in rows(self.names, max(near, NEAR)).items():
            yield f"module {module}", by
        for module, needs in self.needs.items() if near > NEAR else ():
            if module.count(".") < NEAR:
                yield f"needs {module}", {needed: self._by_runs(names) for needed, names in needs.items()}
        homes = {key: self._homes(key) for key in self.homes}
        kept = {key for key, modules in homes.items() if any(module.count(".") < near for module in modules)}
        told: set[str] = set()
        for key, signatures in sorted(self.signatures.items()):
            module, colon, name = key.rpartition(":")
            owner = module + colon + name.partition(".")[0]
            texts = {text for _, text in signatures}
            is_class = near > NEAR and key in self.classes
            differs = is_class or len(texts) > 1 or BASE in "".join(texts)
            if _is_private(key) or owner not in kept or not differs:
                continue
            taken: dict[str, list[int]] = {}
            for place, text in signatures:
                taken.setdefault(text, []).append(place)
            told.add(owner)
            yield f"call {key}", {text: runs(places) for text, places in taken.items()}
        for key in sorted(kept.intersection(self.members)):
            row = self._members(key)
            if row and not _is_private(key):
                told.add(key)
                yield f"class {key}", row
        yield from ((f"home {key}", " ".join(homes[key])) for key in sorted(told))

    def _by_runs(self, names: Mapping[str, Sequence[int]]) -> dict[str, str]:
        grouped: dict[str, list[str]] = {}
        for name, at in sorted(names.items()):
            grouped.setdefault(self.names.runs(at), []).append(name)
        return {run: " ".join(listed) for run, listed in grouped.items()}

    def _members(self, key: str) -> dict[str, str]:
        """When a class is there, what it is derived from, and the members that it has in some of its releases only."""
        there = self.classes[key]
        lacking = {name: at for name, at in self.members[key].items() if len(at) < len(there)}
        if not lacking or len(there) < 2:
            return {}
        bases = {"of": " ".join(self.bases[key])} if key in self.bases else {}
        return {"is": self.names.runs(there)} | bases | self._by_runs(lacking)

    def _homes(self, key: str) -> list[str]:
        """The modules from which it can be taken: where it is defined, and those near the top that have the name."""
        name = key.rpartition(":")[2]
        above = [] if ":" in key else [each for each in self.packages if self.names.has(each, name)]
        return list(dict.fromkeys([*above, *self.homes[key]]))


def _is_private(key: str) -> bool:
    name = key.rpartition(":")[2]
    return name.partition(".")[0].startswith("_")


def define(folder: Path, package: str, wanted: Sequence[Key]) -> tuple[Definitions, dict[Key, list[Any]]]:
    """Read every release of a package and what each says to what is asked: a reason why it fails, else None."""
    definitions = Definitions()
    answers: dict[Key, list[Any]] = {key: [] for key in wanted}
    overrides = any(key[0] == "override" for key in wanted)
    top = tops_of(package)[0]
    elsewhere = Kept(folder, package).module_names()
    for version, modules in releases(folder, package):
        release = Release(_of_package(modules, package), elsewhere)
        if not release.modules:
            continue
        definitions.add(version, release, top)
        calls = self_calls(release, Walk(release, package).run()) if overrides else {}
        for key in wanted:
            if key[0] == "override":
                answers[key].append(_overridden(release, key, calls))
            else:
                answers[key].append(release.answer(Ask(*key, "", (), 0)))
    return definitions, answers


def _overridden(release: Release, key: Key, calls: Mapping[tuple[str, str], Any]) -> tuple[str, str] | None:
    """Why a method that another package writes anew does not take what the release gives it."""
    _, target, method, _, (signature, *others) = key
    found = release.find(target)
    if found.kind != "class" or found.rest:
        return None
    for each in release.line(found.module, found.name):
        for places, keywords, scope in calls.get((f"{each.module}:{each.name}", method), ()):
            if scope in others:
                continue
            why = problem(parse(signature), places, keywords)
            if why and why[0] in ("keyword", "positional"):
                return f"override-{why[0]}", why[1]
    return None


def lay_down(package: str, definitions: Definitions) -> int:
    """Write what the releases of a package define; returns the size."""
    rows = sorted(definitions.rows(near_of(package)), key=lambda each: each[0].encode())
    lines = [f"{key}\t{_text(row)}\n" for key, row in rows]
    place = MATRIX / "interfaces" / f"{package}.tsv"
    place.parent.mkdir(exist_ok=True)
    place.write_text("".join(lines), encoding="utf-8")
    return place.stat().st_size


def connect(
    folder: Path,
    package: str,
    asks: Mapping[Asked, Sequence[str]],
    owner: Mapping[str, str],
    defined: Collection[str],
) -> int:
    """Write what a package asks that some release of another refuses and some release does not; returns the rows.

    What it asks of a package that was not ``defined`` anew is held against the table of that package.
    """
    mine = [str(version) for version in versions_kept(folder, package)]
    place = MATRIX / "links" / f"{package}.json"
    before = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
    tables = {provider: _ByTable(provider, rows) for provider, rows in before.items()}
    found: dict[str, dict[tuple[str, ...], dict[tuple[str, str, str], set[int]]]] = {}
    for each, versions in asks.items():
        leads = (" ".join(atom for atom in each.conditions if atom[0] != FAILS), each.entry, each.file)
        if each.key[0] == ABSENT:
            failure = (ABSENT, each.key[1], "", "", "")
            at_conditions = found.setdefault(each.key[2], {}).setdefault(failure, {})
            at_conditions.setdefault(leads, set()).update(map(mine.index, versions))
            continue
        provider = owner.get(each.key[1].partition(".")[0])
        if provider is None or provider == package:
            continue
        told = _answers(folder, provider) if provider in defined else None
        if told is None:
            told = tables.setdefault(provider, _ByTable(provider, ())).answers(each)
        told_answers = told["answers"].get(each.key)
        for atom in each.conditions:
            if atom[0] == FAILS:
                told_answers = _both(told_answers, told, atom[1:], owner.get(atom[1:].partition(".")[0]) == provider)
        if not told_answers or all(told_answers):
            continue
        names = told["names"]
        versions = [each for each in versions if _worked_then(package, each, provider, told["releases"], told_answers)]
        if not versions:
            continue
        working = names.runs([at for at, why in enumerate(told_answers) if not why])
        reasons: dict[tuple[str, str], list[int]] = {}
        for at, why in enumerate(told_answers):
            if why:
                reasons.setdefault(_reason(each.key, why), []).append(at)
        for (kind, name), failing in reasons.items():
            fails = names.runs(failing) if len(reasons) > 1 else ""
            failure = (kind, _target(each.key), name, working, fails)
            at_conditions = found.setdefault(provider, {}).setdefault(failure, {})
            at_conditions.setdefault(leads, set()).update(mine.index(version) for version in versions)
    table = {provider: list(_rows(rows, mine)) for provider, rows in found.items()}
    for provider, listed in before.items():
        if provider not in defined and provider in owner.values():
            calls = (row for row in listed if row[0] not in _BY_TABLE)
            table[provider] = sorted([*table.get(provider, ()), *calls])
    place.parent.mkdir(exist_ok=True)
    body = ",\n".join(f"{json.dumps(each)}:[\n{_lines(listed)}\n]" for each, listed in sorted(table.items()) if listed)
    place.write_text("{\n" + body + "\n}\n", encoding="utf-8")
    return sum(map(len, table.values()))


_BY_TABLE = frozenset(("import", ABSENT))


class _ByTable:
    """What the releases of a package answer, by its table and by the rows that there are."""

    def __init__(self, package: str, rows: Sequence[Sequence[str]]) -> None:
        self.interfaces = Interfaces(lambda name: read_source_table(str(MATRIX), name))
        self.releases = self.interfaces.releases(package)
        self.known = {row[1]: row[7].split() for row in rows if row[0] == "import" and not row[8]}
        self.names = Names.over(self.releases)

    def answers(self, each: Asked) -> dict[str, Any]:
        """The releases, and of an import a reason for each that lacks what is imported."""
        asked = [each.key, *((("import", atom[1:], "", 0, ())) for atom in each.conditions if atom[0] == FAILS)]
        return {
            "releases": list(self.releases),
            "names": self.names,
            "answers": {key: told for key in asked if (told := self._answer(key))},
        }

    def _answer(self, key: Key) -> list[tuple[str, str] | None] | None:
        kind, _, name = key[:3]
        if kind != "import":
            return None
        parts = _target(key).split(".")
        above = (self.interfaces.runs_with(".".join(parts[:end])) for end in range(1, len(parts) + 1))
        needed = [self.known[_target(key)]] if _target(key) in self.known else [runs for runs in above if runs]
        releases = map(Version, self.releases)
        return [None if all(is_in(each, runs) for runs in needed) else (kind, name) for each in releases]


def _both(
    answers: Sequence[Any] | None, told: Mapping[str, Any], first: str, is_of_same: bool
) -> list[tuple[str, str] | None]:
    """The answers to what is imported where another import of the same package failed: both have to fail."""
    module, _, name = first.rpartition(".")
    keys: tuple[Key, ...] = (("import", module, name, 0, ()), ("import", first, "", 0, ()))
    before = next((told["answers"][key] for key in keys if key in told["answers"]), None)
    if not answers or before is None or not is_of_same:
        return []
    return [why if why and earlier else None for why, earlier in zip(answers, before)]


def _worked_then(
    package: str, version: str, provider: str, releases: Sequence[str], answers: Sequence[tuple[str, str] | None]
) -> bool:
    """Whether some release of the provider that was new when the package's appeared gives what it asks.

    What none of them gave its authors would have met: there a run does not get to it, whatever the text says.
    """
    days = _days()
    today = days.get(package, {}).get(version)
    if today is None or provider not in days:
        return True
    before = [(days[provider].get(each, date.max), not why) for each, why in zip(releases, answers)]
    new = [works for day, works in before if today - _NEW <= day <= today] or [
        works for day, works in sorted(before) if day <= today
    ][-1:]
    return any(new) or not new


@cache
def _days() -> dict[str, dict[str, date]]:
    known: dict[str, dict[str, date]] = read_toml(MATRIX / "tables" / "release-history.toml")["releases"]
    return known


def _lines(rows: Sequence[Any]) -> str:
    return ",\n".join(map(_text, rows))


def _rows(rows: Mapping[Any, Mapping[tuple[str, str, str], set[int]]], mine: Sequence[str]) -> Iterator[list[str]]:
    """One row for each thing that is asked and what must be installed for it, from the file that leads there first."""
    runs = Names.over(mine).runs
    for (kind, target, name, working, fails), places in sorted(rows.items()):
        covered: set[int] = set()
        by: dict[tuple[str, str], tuple[str, set[int]]] = {}
        for (conditions, entry, file), at in sorted(places.items(), key=_first_met):
            _, held = by.setdefault((conditions, entry), (file, set()))
            held |= at - covered
            if not conditions and entry.startswith("import "):
                covered |= at
        for (conditions, entry), (file, held) in by.items():
            if held:
                asks = runs(sorted(held))
                asks = f">={mine[0]},{asks}".rstrip(",") if not asks.startswith((">", "=")) else asks
                yield [kind, target, name, file, entry, conditions, asks, working, fails]


def _first_met(place: tuple[tuple[str, str, str], set[int]]) -> tuple[int, bool, str, str]:
    """What needs the least to be installed comes first, then what `import` meets."""
    (conditions, entry, file), _ = place
    return len(conditions.split()), not entry.startswith("import "), entry, file


def _reason(key: Key, why: tuple[str, str]) -> tuple[str, str]:
    return (why[0], why[1].rpartition(".")[2]) if key[0] not in ("import", "attribute") else (key[0], key[2])


def _target(key: Key) -> str:
    kind, target, name = key[:3]
    return f"{target}.{name}" if name else target


@cache
def _answers(folder: Path, package: str) -> dict[str, Any] | None:
    place = folder / f"{package}.answers"
    if not place.is_file():
        return None
    told: dict[str, Any] = pickle.loads(place.read_bytes())
    return told | {"names": Names.over(told["releases"])}


def _text(row: Any) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="default: all")
    parser.add_argument("--no-fetch", action="store_true", help="look for no new releases")
    parser.add_argument("--links", action="store_true", help="write what is asked alone")
    given = parser.parse_intermixed_args()
    chosen = given.packages or list(packages())
    if not given.no_fetch:
        release_sources.fetch(given.folder, chosen)
    chosen = [package for package in chosen if (given.folder / package).is_dir()]
    before = json.loads(INDEX.read_text(encoding="utf-8")) if INDEX.is_file() else {}
    owner = owners(package for package in packages() if package in chosen or package in before.get("releases", {}))
    gathered = {package: gather(given.folder, package) for package in chosen}
    wanted: dict[str, dict[Key, None]] = {package: {} for package in chosen}
    for known in gathered.values():
        for each in known["asks"]:
            provider = owner.get(each.key[1].partition(".")[0])
            if provider in wanted and each.key[0] != ABSENT:
                wanted[provider][each.key] = None
    defined = [] if given.links else chosen
    with ProcessPoolExecutor(_AT_ONCE) as pool:
        for told in pool.map(_define, [(given.folder, package, tuple(wanted[package])) for package in defined]):
            print(told, file=sys.stderr, flush=True)
    read = {package: " ".join(map(str, versions_kept(given.folder, package))) for package in chosen}
    read = {**before.get("releases", {}), **read}
    releases = {package: read[package] for package in packages() if package in read}
    index = {"modules": owner, "releases": releases, "reviewed": str(date.today())}
    INDEX.write_text(json.dumps(index, indent=0) + "\n", encoding="utf-8")
    for package, known in gathered.items():
        count = connect(given.folder, package, known["asks"], owner, defined)
        print(f"{package}: {count} links that may break", file=sys.stderr, flush=True)


def _define(given: tuple[Path, str, Sequence[Key]]) -> str:
    folder, package, wanted = given
    definitions, answers = define(folder, package, wanted)
    size = lay_down(package, definitions)
    failing = {key: told for key, told in answers.items() if any(told)}
    kept = {"releases": definitions.names.releases, "answers": failing}
    (folder / f"{package}.answers").write_bytes(pickle.dumps(kept))
    return f"{package}: {size >> 10} KiB of definitions, {len(failing)} of {len(wanted)} asks fail somewhere"


if __name__ == "__main__":
    main()
