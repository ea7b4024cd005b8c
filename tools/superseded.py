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
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.interfaces.links import Link, broken_links
from compatcheck.matrix.compile import read_entries
from compatcheck.matrix.entry import Entry, Example
from compatcheck.matrix.matching.match import Occurrence, TraitFinder
from compatcheck.packages.versions import final_release
from compatcheck.pipelines.diagnose import case_of_text
from compatcheck.results.findings import Remedy
from tools.labelled.agreement import agrees_with

FOLDER = Path(__file__).parents[1] / "matrix"
NOTES = FOLDER / "tables" / "link-notes.toml"
LINKS = "asked-of-release-without-it"
LINES = "interface-of-other-releases"
_GENERIC = frozenset({LINKS, LINES, "known-import-missing", "imports-name-of-other-releases", "import-name-missing"})
_LINE = re.compile(
    r"unexpected keyword argument|required (?:positional|keyword-only) argument|positional arguments? but"
    r"|has no attribute|cannot import name|No module named|multiple values for"
)
_WORD = re.compile(r"[A-Za-z_]\w{3,}")


class Comparison(NamedTuple):
    """An entry with what speaks against leaving it to the tables; nothing where they agree.

    ``links`` are what its affected examples get: by who asks and who is asked, the simple names.
    """

    entry: Entry
    against: tuple[str, ...]
    seen: tuple[str, ...]
    links: dict[tuple[str, str], dict[str, None]]
    needs_note: bool


def candidates(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries in force that end a run, are ruled on by no probe and have only error lines of interfaces."""
    for entry in entries:
        patterns = [each.example for each in entry.error_patterns]
        generic = any(_GENERIC & set(table.get("traits", ())) for table in entry.affected)
        if (
            entry.withdrawn
            or (entry.probe and entry.probe.name != "package_imports")
            or generic
            or entry.impact not in ("crash", "import-fail")
        ):
            continue
        if patterns and all(map(_LINE.search, patterns)):
            yield entry


def compare(entry: Entry, known: matrix.Matrix) -> Comparison:
    """What the tables say of the examples and the lines of an entry."""
    against: list[str] = []
    seen: list[str] = []
    links: dict[tuple[str, str], dict[str, None]] = {}
    needs_note = False
    examples = [each for each in entry.examples if each.expect == "affected"]
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
    for example in (each for each in entry.examples if each.expect == "unaffected"):
        certain, found = _links(example, known)
        for each in found if certain or needs_note else ():
            alike = _is_right(each, entry) and any(name in each.summary for name in named)
            if alike and not _is_told_by_others(example, each, entry, known):
                against.append(f"{_stated(example)} is affected: {each.summary}")
    for line in (each.example for each in entry.error_patterns):
        answers = [each for example in examples for each in _of_line(line, example, known)]
        seen += [f"line {line[:80]}: {each.summary}" for each in answers[:2]]
        if not any(_is_right(each, entry) for each in answers):
            against.append(f"line {'gets another answer' if answers else 'is not answered'}: {line[:100]}")
    return Comparison(entry, tuple(against), tuple(seen), links, needs_note)


def _is_of_these_alone(entry: Entry, found: Occurrence) -> bool:
    """Whether the entry asks for nothing but versions of the two packages of a finding."""
    wanted = {f"distributions.{name}" for name in found.packages}
    return all({path for path, value in table.items() if value != "absent"} == wanted for table in entry.affected)


def _broken(example: Example, known: matrix.Matrix) -> Iterator[Link]:
    stated = example.environment.get("distributions", {})
    releases: dict[str, Version] = {
        name: found for name, text in stated.items() if text and (found := final_release(text))
    }
    return broken_links(known.table, releases)


def _simple_name(link: Link) -> str:
    return (link.name or link.target).rpartition(".")[2]


def _is_told_by_others(example: Example, found: Occurrence, entry: Entry, known: matrix.Matrix) -> bool:
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


def _links(example: Example, known: matrix.Matrix) -> tuple[bool, Sequence[Occurrence]]:
    return _find(LINKS, Environment(example.environment), known)


def _of_line(line: str, example: Example | None, known: matrix.Matrix) -> Sequence[Occurrence]:
    environment = case_of_text(line, "line", known).environment
    for name, version in (example.environment.get("distributions", {}) if example else {}).items():
        environment = environment.with_fact(f"distributions.{name}", version)
    return _find(LINES, environment, known)[1]


def _find(trait: str, environment: Environment, known: matrix.Matrix) -> tuple[bool, Sequence[Occurrence]]:
    find: TraitFinder = matrix.trait_finder(known.table)
    verdict = find(trait, environment)
    return verdict.holds is True, verdict.occurrences


def _is_right(found: Occurrence, entry: Entry) -> bool:
    """Whether a finding is about packages of the entry and one of its pins overlaps one of a remedy."""
    about = {*entry.distributions, *(path.split(".", 1)[1] for path in _distributions(entry))}
    fixes = [{"packages": remedy.pins, "config": {}} for remedy in entry.remedies if remedy.pins]
    ways = [Remedy("pins", "", pins) for pins in (found.pins, found.instead) if pins]
    return about.issuperset(found.packages) and any(agrees_with(way, fix) for way in ways for fix in fixes)


def _distributions(entry: Entry) -> Iterator[str]:
    return (path for table in entry.affected for path in table if path.startswith("distributions."))


def _text(entry: Entry) -> str:
    return " ".join((entry.summary, entry.mechanism, *(each.example for each in entry.error_patterns)))


def _stated(example: Example) -> str:
    return " ".join(f"{name} {version}" for name, version in example.environment.get("distributions", {}).items())


def withdraw(found: Comparison) -> None:
    """Mark the entry as withdrawn and append what it says of its links to the table of notes."""
    entry = found.entry
    path = FOLDER / next(FOLDER.glob(f"*/{entry.id}.toml"))
    today = datetime.now(timezone.utc).date()
    text = path.read_text(encoding="utf-8")
    reason = (
        "The tables of interfaces answer its examples and its lines; its mechanism is a note in tables/link-notes.toml."
    )
    path.write_text(f'{text.rstrip()}\n\n[withdrawn]\non = {today}\nreason = "{reason}"\n', encoding="utf-8")
    sources = [each for each in entry.evidence if each.url.startswith("https://")]
    source = next((each for each in sources if each.kind == "source"), sources[0])
    with NOTES.open("a", encoding="utf-8") as notes:
        for (package, provider), names in found.links.items():
            rows = [
                "[[notes]]",
                f'entry = "{entry.id}"',
                f'package = "{package}"',
                f'provider = "{provider}"',
                f"names = {json.dumps(list(names))}",
                *(["sure = true"] if found.needs_note else []),
                f'source = "{source.url}"',
                f"note = {json.dumps(entry.mechanism, ensure_ascii=False)}",
            ]
            notes.write("\n" + "\n".join(rows) + "\n")


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
        if arguments.withdraw:
            withdraw(found)


if __name__ == "__main__":
    main()
