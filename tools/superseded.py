"""Find the entries that the tables of interfaces answer as precisely, and withdraw them.

    python -m tools.superseded              what speaks against each entry about names, parameters or members
    python -m tools.superseded --each       also what each example and line of it gets
    python -m tools.superseded --withdraw CC-2025-1113 ...   withdraw these; what they say becomes notes on the links

An entry agrees where

- each of its affected examples is affected by the tables too, by packages of the entry, with a pin that one of its
  remedies overlaps, and at least one of these findings names what the entry names. Where the versions of these two
  packages are all that the entry asks for, a possible finding will do, and the note makes it sure;
- no unaffected example gets a finding about what the affected ones named, unless another entry tells the same;
- each of its error lines, met in an affected example, gets a finding of the tables about a package of the entry, with
  such a pin.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.interfaces.failures import Answer, answers
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.interfaces.links import Link, broken_links
from compatcheck.matrix._traits import Table
from compatcheck.matrix.compile import read_entries
from compatcheck.matrix.entry import Case, Entry
from compatcheck.matrix.matching.match import Occurrence, TraitFinder
from compatcheck.matrix.traits._reached_links import reached_links, refused_releases
from compatcheck.packages.interface_failures import read_failure
from compatcheck.packages.versions import contains, final_release, parse_range
from compatcheck.pipelines.diagnose import case_of_text
from compatcheck.results.findings import Remedy
from tools.labelled.agreement import agrees_with

FOLDER = Path(__file__).parents[1] / "matrix"
NOTES = FOLDER / "tables" / "link-notes.toml"
LINKS = "asked-of-release-without-it"
LINES = "interface-of-other-releases"
CODE = "calls-what-other-releases-take"
_GENERIC = frozenset({LINKS, LINES, CODE, "imports-name-of-other-releases", "import-name-missing"})
_LINE = re.compile(
    r"unexpected keyword argument|required (?:positional|keyword-only) argument|positional arguments? but"
    r"|has no attribute|cannot import name|No module named|multiple values for"
)
_SILENT = "is not answered"
_WORD = re.compile(r"[A-Za-z_]\w{3,}")
_TOLD: dict[tuple[str, str, str], tuple[Answer, ...]] = {}


class Note(NamedTuple):
    """A row for the table of notes, and the tables of conditions of the entry that it stands for."""

    row: dict[str, Any]
    tables: tuple[int, ...]


class Comparison(NamedTuple):
    """An entry with what speaks against leaving it to the tables; nothing where they agree.

    ``notes`` are the rows with which they do.
    """

    entry: Entry
    against: tuple[str, ...]
    seen: tuple[str, ...]
    notes: tuple[Note, ...]


def candidates(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries in force that end a run, are ruled on by no probe and have only error lines of interfaces."""
    for entry in entries:
        patterns = [each.example for each in entry.error_patterns]
        generic = any(_GENERIC & set(table.get("traits", ())) for table in entry.affected)
        if (
            (entry.probe and entry.probe.name != "package_imports")
            or generic
            or entry.impact not in ("crash", "import-fail")
        ):
            continue
        if patterns and all(map(_LINE.search, patterns)):
            yield entry


def compare(entry: Entry, known: matrix.Matrix) -> Comparison:
    """What the tables say of the examples and the lines of an entry, with the plainest notes with which they agree."""
    plain = _compare_links(entry, known)
    if not plain.against or any(_SILENT in each for each in plain.against):
        return plain
    best: Comparison | None = None
    for notes in _noted(entry, known):
        found = _compare_noted(entry, known, notes)
        if not found.against:
            return found
        if best is None or len(found.against) < len(best.against):
            best = found
    return best or plain


def _noted(entry: Entry, known: matrix.Matrix) -> Iterator[tuple[Note, ...]]:
    """Notes that may stand for an entry, by which package of it lacks what a line asks, and which one asks."""
    lines = [each.example for each in entry.error_patterns]
    ordered = list(dict.fromkeys(name for table in entry.affected for name in _packages_in(table)))
    choices: list[list[tuple[str, Answer]]] = []
    for provider in ordered:
        found = [(line, answer) for line in lines for answer in _answers_of(line, provider, ordered, known)]
        if found:
            choices.append(found)
    every = [each for found in choices for each in found]
    ways = [*choices, *([every] if len(choices) > 1 else []), *([each] for each in every if len(every) > 1)]
    for way in ways:
        askers = [name for name in (*entry.packages, *ordered, "") if name not in {each.package for _, each in way}]
        for asker in dict.fromkeys(askers):
            notes = [
                note
                for line, answer in way
                for note in _notes_of(entry, line, answer, asker if asker in ordered else "", known)
            ]
            if notes:
                yield tuple(_covering(notes, entry, known))


def _covering(notes: Sequence[Note], entry: Entry, known: matrix.Matrix) -> list[Note]:
    """The notes without those whose conditions others answer for more of their releases, or for just these."""
    lost = [sum(1 for _ in _lost_by(note, entry, known)) for note in notes]

    def misses(place: int, at: int) -> tuple[int, bool, bool]:
        row = notes[place].row
        return lost[place], "within" in row, row["names"][0] not in str(dict(entry.affected[at]))

    best = {
        at: min(misses(place, at) for place, note in enumerate(notes) if at in note.tables)
        for at in {at for note in notes for at in note.tables}
    }
    chosen = (note for place, note in enumerate(notes) if any(misses(place, at) == best[at] for at in note.tables))
    return list({json.dumps({**note.row, "line": ""}): note for note in chosen}.values())


def _lost_by(note: Note, entry: Entry, known: matrix.Matrix) -> Iterator[str]:
    """The releases that the conditions of a note speak of and that have what is asked."""
    provider, refused = note.row["provider"], set(_refused(note, known))
    stated = entry.affected[note.tables[0]][f"distributions.{provider}"]
    releases = Interfaces(known.table).releases(provider)
    return (each for each in releases if _is_within(each, stated) and each not in refused)


def _packages_in(table: Mapping[str, Any]) -> Iterator[str]:
    for path, value in table.items():
        if path.startswith("distributions.") and value != "absent":
            yield path.removeprefix("distributions.")


def _answers_of(line: str, provider: str, others: Sequence[str], known: matrix.Matrix) -> Iterator[Answer]:
    for asker in ("", *others):
        if found := _told(line, provider, asker, known):
            yield from found
            return


def _notes_of(entry: Entry, line: str, answer: Answer, asker: str, known: matrix.Matrix) -> Iterator[Note]:
    """One note for each range of the asking package, with the conditions of the tables that have it."""
    by_range: dict[tuple[str, str], list[int]] = {}
    for at, table in enumerate(entry.affected):
        if answer.package in _packages_in(table):
            key = str(table.get(f"distributions.{asker}", "")), str(table[f"distributions.{answer.package}"])
            by_range.setdefault(key, []).append(at)
    for (asks, stated), places in by_range.items():
        left = {f"distributions.{answer.package}"} | ({f"distributions.{asker}"} if asks else set())
        runs = [{key: value for key, value in entry.affected[at].items() if key not in left} for at in places]
        without = {**({f"distributions.{asker}": asks} if asks else {}), f"distributions.{answer.package}": "absent"}
        absent = [
            at for at, table in enumerate(entry.affected) if any(dict(table) == {**run, **without} for run in runs)
        ]
        source = next((each for each in _public(entry) if each.kind == "source"), next(_public(entry), None))
        package = asker if asks else ""
        within = stated if _goes_further(answer, stated, known) else ""
        row = {
            "entry": entry.id,
            "package": package,
            "provider": answer.package,
            "names": [answer.name.rpartition(".")[2]],
            **({"asks": asks} if asks else {}),
            "line": line,
            "refused": list(refused_releases(known.table, line, answer.package, package, within)),
            **({"within": within} if within else {}),
            **({"absent": True} if absent else {}),
            **({"runs": runs} if all(runs) else {}),
            **({"reported": True} if entry.confidence == "reported" else {}),
            **({"remedies": ways} if (ways := _ways_beside(entry, {answer.package, asker})) else {}),
            "source": source.url if source else "",
            "note": entry.mechanism,
        }
        yield Note(row, (*places, *absent))


def _public(entry: Entry) -> Iterator[Any]:
    return (each for each in entry.evidence if each.url.startswith("https://"))


def _ways_beside(entry: Entry, packages: Set[str]) -> list[dict[str, Any]]:
    """The remedies that are no release of these packages; those that the entry puts first stay first."""
    found: list[dict[str, Any]] = []
    is_first = True
    for remedy in entry.remedies:
        if remedy.pins and packages & remedy.pins.keys():
            is_first = False
            continue
        stated = remedy.model_dump(exclude_defaults=True, exclude_none=True)
        found.append({**stated, **({"first": True} if is_first else {})})
    return found


def _compare_noted(entry: Entry, known: matrix.Matrix, notes: Sequence[Note]) -> Comparison:
    """What the tables say once they have these notes."""
    table = _with_notes(known, notes)
    seen: list[str] = []
    against = [*_lost_releases(entry, notes, known), *_unanswered(entry, known, seen, table)]
    for example in entry.cases:
        found = list(_of_notes(example, table, known))
        seen += [f"{example.expect} {_stated(example)}: {status} {each.summary}" for status, each in found[:2]]
        statuses = {status for status, each in found if _is_right(each, entry)}
        if example.expect == "affected":
            wanted = {"affected", "possible"} if entry.confidence == "reported" else {"affected"}
            if not statuses & wanted:
                against.append(f"{_stated(example)} is {'only possible' if statuses else 'not found'} with notes")
        elif example.expect == "unaffected":
            if found:
                against.append(f"{_stated(example)} is {found[0][0]} with notes: {found[0][1].summary}")
        elif _status_by_entry(entry, example, known) and not statuses:
            against.append(f"{_stated(example)}, which is possible, is not found with notes")
    return Comparison(entry, tuple(against), tuple(seen), tuple(notes))


def _with_notes(known: matrix.Matrix, notes: Sequence[Note]) -> Table:
    held = known.table("link-notes")
    mine = {**held, "notes": [each.row for each in notes]}
    return lambda name: mine if name == "link-notes" else known.table(name)


def _of_notes(example: Case, table: Table, known: matrix.Matrix) -> Iterator[tuple[str, Occurrence]]:
    """What the notes of an entry find in an example."""
    environment = matrix.infer(known, Environment(example.environment)).view
    for of_packages in (True, False):
        for each in reached_links(environment, table, of_packages=of_packages):
            yield ("affected" if each.is_certain else "possible"), each.occurrence


def _status_by_entry(entry: Entry, example: Case, known: matrix.Matrix) -> str | None:
    found = matrix.judge(known, Environment(example.environment)).findings
    return next((each.status for each in found if each.id == entry.id), None)


def _lost_releases(entry: Entry, notes: Sequence[Note], known: matrix.Matrix) -> Iterator[str]:
    """The releases that a table of the entry speaks of and that have what is asked by the tables of interfaces."""
    for at, table in enumerate(entry.affected):
        mine = [each for each in notes if at in each.tables]
        if not mine:
            yield f"no line speaks of the conditions {dict(table)}"
            continue
        for provider in {each.row["provider"] for each in mine}:
            refused = {each for note in mine if note.row["provider"] == provider for each in _refused(note, known)}
            stated = table[f"distributions.{provider}"]
            of_entry = [each for each in Interfaces(known.table).releases(provider) if _is_within(each, stated)]
            if lost := [each for each in of_entry if each not in refused]:
                yield f"{provider} {' '.join(lost[:3])} ... {lost[-1]} ({len(lost)} of {len(of_entry)}) have it"


def _refused(note: Note, known: matrix.Matrix) -> list[str]:
    provider, within = note.row["provider"], note.row.get("within", "present")
    runs = [each.accepts for each in _told(note.row["line"], provider, note.row["package"], known)]
    return [
        each
        for each in Interfaces(known.table).releases(provider)
        if _is_within(each, within) and any(not is_in(Version(each), run) for run in runs)
    ]


def _told(line: str, provider: str, asker: str, known: matrix.Matrix) -> tuple[Answer, ...]:
    """What the tables say of a line that these two packages may have to do with, about the first of them."""
    key = line, provider, asker
    if key not in _TOLD:
        _TOLD[key] = _tell(*key, known)
    return _TOLD[key]


def _tell(line: str, provider: str, asker: str, known: matrix.Matrix) -> tuple[Answer, ...]:
    failure = read_failure([line])
    found = answers(failure, known.table, {provider: None}, {provider, asker} - {""}) if failure else ()
    return tuple(each for each in found if each.package == provider)


def _goes_further(answer: Answer, stated: str, known: matrix.Matrix) -> bool:
    """Whether releases lack what is asked of which the entry does not speak: nothing says that these are asked."""
    if stated == "present":
        return False
    releases = Interfaces(known.table).releases(answer.package)
    return any(not is_in(Version(each), answer.accepts) and not _is_within(each, stated) for each in releases)


def _is_within(release: str, condition: Any) -> bool:
    return condition == "present" or (
        isinstance(condition, str) and condition != "absent" and contains(parse_range(condition), Version(release))
    )


def _unanswered(entry: Entry, known: matrix.Matrix, seen: list[str], table: Table | None = None) -> Iterator[str]:
    examples = [each for each in entry.cases if each.expect == "affected"]
    for line in (each.example for each in entry.error_patterns):
        told: list[Occurrence] = []
        for example in examples:
            told += _of_line(line, example, known, table)
            if any(_is_right(each, entry) for each in told):
                break
        else:
            yield f"line {'gets another answer' if told else _SILENT}: {line[:100]}"
        seen += [f"line {line[:80]}: {each.summary}" for each in told[:2]]


def _compare_links(entry: Entry, known: matrix.Matrix) -> Comparison:
    """What the links that were read from the sources say of the examples, and the tables of the lines."""
    against: list[str] = []
    seen: list[str] = []
    links: dict[tuple[str, str], dict[str, None]] = {}
    needs_note = False
    against += _unanswered(entry, known, seen)
    if against:
        return Comparison(entry, tuple(against), tuple(seen), ())
    examples = [each for each in entry.cases if each.expect == "affected"]
    for example in examples:
        certain, found = _links(example, known)
        right = [each for each in found if _is_right(each, entry)]
        seen += [f"affected {_stated(example)}: {'sure' if certain else 'open'} {each.summary}" for each in found[:2]]
        for link in _broken(example, known):
            if any(
                {link.package, link.provider} == set(each.packages) and link.target in each.summary for each in right
            ):
                links.setdefault((link.package, link.provider), {})[_simple_name(link)] = None
        if not right or not (certain or _is_of_these_alone(entry, right[0])):
            against.append(f"{_stated(example)} is {'only possible' if right else 'not found'}")
        needs_note = needs_note or not certain
    named = {name for names in links.values() for name in names}
    if named and not named & set(_WORD.findall(_text(entry))):
        against.append(f"the tables name something else: {', '.join(named)}")
    for example in (each for each in entry.cases if each.expect == "unaffected"):
        certain, found = _links(example, known)
        for each in found if certain or needs_note else ():
            alike = _is_right(each, entry) and any(name in each.summary for name in named)
            if alike and not _is_told_by_others(example, each, entry, known):
                against.append(f"{_stated(example)} is affected: {each.summary}")
    return Comparison(entry, tuple(against), tuple(seen), tuple(_notes_on_links(entry, links, needs_note)))


def _notes_on_links(entry: Entry, links: Mapping[tuple[str, str], Iterable[str]], is_sure: bool) -> Iterator[Note]:
    source = next((each for each in _public(entry) if each.kind == "source"), next(_public(entry), None))
    for (package, provider), names in links.items():
        row = {
            "entry": entry.id,
            "package": package,
            "provider": provider,
            "names": list(names),
            **({"sure": True} if is_sure else {}),
            **({"remedies": ways} if (ways := _ways_beside(entry, {package, provider})) else {}),
            "source": source.url if source else "",
            "note": entry.mechanism,
        }
        yield Note(row, ())


def _is_of_these_alone(entry: Entry, found: Occurrence) -> bool:
    """Whether the entry asks for nothing but versions of the two packages of a finding."""
    wanted = {f"distributions.{name}" for name in found.packages}
    return all({path for path, value in table.items() if value != "absent"} == wanted for table in entry.affected)


def _broken(example: Case, known: matrix.Matrix) -> Iterator[Link]:
    stated = example.environment.get("distributions", {})
    releases: dict[str, Version] = {
        name: found for name, text in stated.items() if text and (found := final_release(text))
    }
    return broken_links(known.table, releases)


def _simple_name(link: Link) -> str:
    return (link.name or link.target).rpartition(".")[2]


def _is_told_by_others(example: Case, found: Occurrence, entry: Entry, known: matrix.Matrix) -> bool:
    others = matrix.judge(known, Environment(example.environment)).findings
    return any(
        each.status == "affected"
        and each.id != entry.id
        and each.mechanism
        and set(found.packages) <= set(each.packages)
        for each in others
        if each.id not in _ids_of_tables()
    )


@cache
def _ids_of_tables() -> frozenset[str]:
    entries = read_entries(FOLDER).values()
    return frozenset(each.id for each in entries for table in each.affected if _GENERIC & set(table.get("traits", ())))


def _links(example: Case, known: matrix.Matrix) -> tuple[bool, Sequence[Occurrence]]:
    return _find(LINKS, Environment(example.environment), known)


def _of_line(line: str, example: Case | None, known: matrix.Matrix, table: Table | None = None) -> Sequence[Occurrence]:
    environment = case_of_text(line, "line", known).environment
    for name, version in (example.environment.get("distributions", {}) if example else {}).items():
        environment = environment.with_fact(f"distributions.{name}", version)
    return _find(LINES, environment, known, table)[1]


def _find(
    trait: str, environment: Environment, known: matrix.Matrix, table: Table | None = None
) -> tuple[bool, Sequence[Occurrence]]:
    find: TraitFinder = matrix.trait_finder(table or known.table)
    verdict = find(trait, environment)
    return verdict.holds is True, verdict.occurrences


def _is_right(found: Occurrence, entry: Entry) -> bool:
    """Whether a finding is about packages of the entry and one of its pins overlaps one of a remedy."""
    about = {*entry.distributions, *(path.split(".", 1)[1] for path in _distributions(entry))}
    fixes = [{"packages": remedy.pins, "config": {}} for remedy in entry.remedies if remedy.pins]
    if not fixes:
        return about.issuperset(found.packages)
    ways = [Remedy("pins", "", pins) for pins in (found.pins, found.instead) if pins]
    return about.issuperset(found.packages) and any(agrees_with(way, fix) for way in ways for fix in fixes)


def _distributions(entry: Entry) -> Iterator[str]:
    return (path for table in entry.affected for path in table if path.startswith("distributions."))


def _text(entry: Entry) -> str:
    return " ".join((entry.summary, entry.mechanism, *(each.example for each in entry.error_patterns)))


def _stated(example: Case) -> str:
    return " ".join(f"{name} {version}" for name, version in example.environment.get("distributions", {}).items())


def withdraw(found: Comparison) -> None:
    """Mark the entry as withdrawn and append what it says of its links to the table of notes."""
    entry = found.entry
    path = FOLDER / next(FOLDER.glob(f"*/{entry.id}.toml"))
    today = datetime.now(timezone.utc).date()
    of_code = any(not note.row["package"] for note in found.notes)
    successors = ["CC-2026-3701" if of_code else "CC-2026-1330", "CC-2026-3124"]
    reason = (
        f"{' and '.join(successors)} answer its examples and its lines by the tables of interfaces; its mechanism is a "
        "note in tables/link-notes.toml."
    )
    kept = f"id = {_toml(entry.id)}\ntitle = {_toml(entry.title)}\n"
    why = f"on = {today}\nreason = {_toml(reason)}\nsuccessors = {_toml(successors)}\n"
    path.write_text(f"{kept}\n[withdrawn]\n{why}", encoding="utf-8")
    with NOTES.open("a", encoding="utf-8") as notes:
        for note in found.notes:
            notes.write("\n[[notes]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in note.row.items()))


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return "[\n" + "".join(f"    {_toml(each)},\n" for each in value) + "]"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", action="store_true", help="print what each example and line gets")
    parser.add_argument("--withdraw", nargs="+", metavar="ID", default=[], help="withdraw these entries")
    arguments = parser.parse_args()
    known = matrix.load()
    for entry in candidates(list(read_entries(FOLDER).values())):
        if arguments.withdraw and entry.id not in arguments.withdraw:
            continue
        found = compare(entry, known)
        print(f"{'differs' if found.against else 'agrees'}  {entry.id}  {entry.title}", flush=True)
        for each in found.against:
            print(f"    - {each}")
        for each in found.seen if arguments.each else ():
            print(f"      {each}")
        if arguments.withdraw and not found.against:
            withdraw(found)


if __name__ == "__main__":
    main()
