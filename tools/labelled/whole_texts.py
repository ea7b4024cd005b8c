"""Labelled reports as people write them, and whether an explanation names their cause and a way out that works."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck import advice, matrix
from compatcheck.environment import Environment, Location
from compatcheck.explanation.features import Context, Corpus, Weighing
from compatcheck.explanation.ranking import weighings
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.interfaces.signature import parse
from compatcheck.matrix.compile import read_entries
from compatcheck.matrix.rows import Row
from compatcheck.pipelines.diagnose import case_of_text
from compatcheck.results.cases import Case, Sighting
from tools.labelled.agreement import agrees_with, speaks_of

FOLDER = Path(__file__).parent / "reports"
MATRIX = Path(__file__).parents[2] / "matrix"


class WholeText(NamedTuple):
    """A report with its settled cause and fix; one without a package of the cause is explained by no entry.

    ``origin`` is the name of the file that holds it.
    """

    id: str
    repository: str
    date: str
    language: str
    style: str
    text: str
    label: Mapping[str, Any]
    split: str
    origin: str

    @property
    def has_cause(self) -> bool:
        return bool(self.label["cause"]["packages"] or self.label["fix"]["packages"] or self.label["fix"]["config"])


def whole_texts(files: list[Path]) -> list[WholeText]:
    """The reports in JSONL files."""
    return [_text(json.loads(line), path.stem) for path in files for line in _lines(path)]


def _lines(path: Path) -> Iterator[str]:
    return (line for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def _text(row: Mapping[str, Any], file: str) -> WholeText:
    source = row.get("source", "")
    repository = "/".join(source.split("/")[3:5]) if source.startswith("https://github.com/") else f"{file}/{row['id']}"
    return WholeText(
        row["id"],
        repository.lower(),
        row.get("date", ""),
        row.get("language", ""),
        row.get("style", ""),
        row["text"],
        {"cause": row["cause"], "fix": row["fix"]},
        row.get("split", ""),
        file,
    )


class Weighed(NamedTuple):
    """A report, every entry in its light, and which of them are right."""

    text: WholeText
    context: Context
    weighings: list[Weighing]
    right: list[bool]


def weighed(text: WholeText, known: matrix.Matrix, rows: Corpus) -> Weighed:
    """Read a report as `compatcheck diagnose` does, every other one with its day, and weigh every entry."""
    case = case_of_text(text.text, text.id, known)
    if len(text.date) == 10 and zlib.crc32(text.id.encode()) % 2:
        case = case._replace(environment=case.environment.with_fact("report.date", text.date))
    context, found = weighings(case, known, rows)
    return Weighed(text, context, found, [is_right(each, text, context, known) for each in found])


def is_right(weighing: Weighing, text: WholeText, context: Context, known: matrix.Matrix) -> bool:
    """Whether an entry speaks of a package of the cause or the fix, and one of its remedies agrees with the fix."""
    if not text.has_cause:
        return False
    named = {*text.label["cause"]["packages"], *text.label["fix"]["packages"]}
    computed = "traits" in weighing.conditions and weighing.verdict.occurrences
    if not computed and not named & set(weighing.row.packages) and weighing.row.packages:
        return False
    if computed:
        finding = matrix.finding_of(known, weighing.row, weighing.verdict, context.judged)
    else:
        finding = _plain_finding(known.revision, weighing.row.id, known, weighing)
    finding = next(iter(advice.recommend(context.judged.view, [finding])))
    return speaks_of(finding, text.label) and any(agrees_with(each, text.label["fix"]) for each in finding.remedies)


_PLAIN: dict[tuple[str, str], Any] = {}


def _plain_finding(revision: str, entry: str, known: matrix.Matrix, weighing: Weighing) -> Any:
    """The finding of an entry in an empty environment, made once."""
    key = (revision, entry)
    if key not in _PLAIN:
        _PLAIN[key] = matrix.finding_of(
            known, weighing.row, weighing.verdict._replace(occurrences=()), matrix.infer(known, Environment({}))
        )
    return _PLAIN[key]


def own_lines(known: matrix.Matrix, rows: Corpus, every: int) -> Iterator[Weighed]:
    """Error lines alone, as people paste the last line of a traceback: of each so many patterns its own example."""
    examples = [
        (row, pattern["example"])
        for row in rows.rows
        for pattern in _raw(known, row).get("error_patterns", ())
        if not pattern["example"].startswith("  ")
    ]
    for row, line in examples[::every]:
        context, found = weighings(case_of_text(f"{line}\n", row.id, known), known, rows)
        if context.hits:
            yield Weighed(_of_entry(row, line), context, found, [each.row.id in context.hits for each in found])


def own_answers(known: matrix.Matrix, rows: Corpus, every: int) -> Iterator[Weighed]:
    """Error lines that no person wrote down: of each so many parameters that came or went a call that gives it.

    Every other one has the release that refuses it. Right is what knows the line: the tables, or an entry.
    """
    for number, (line, release) in enumerate(_lost_parameters(known)):
        if number % every == 0:
            text = f"{release}\n{line}\n" if number // every % 2 else f"{line}\n"
            context, found = weighings(case_of_text(text, line, known), known, rows)
            if context.hits:
                label = {"cause": {"packages": []}, "fix": {"packages": {}, "config": {}}}
                origin = WholeText(line, f"line/{line}", "", "en", "own", text, label, "fit", "tables")
                yield Weighed(origin, context, found, [each.row.id in context.hits for each in found])


def _lost_parameters(known: matrix.Matrix) -> Iterator[tuple[str, str]]:
    """An error line for each parameter of a class that a release refuses and others take, and that release."""
    interfaces = Interfaces(known.table)
    for package in interfaces.packages():
        rows = known.table(f"interfaces/{package}")
        for key in (each.removeprefix("call ") for each in rows if each.startswith("call ")):
            signatures = interfaces.signatures(package, key)
            taken = {signature: parse(signature) for signature in signatures}
            if not key[:1].isupper() or "." in key or any(each.takes_more for each in taken.values()):
                continue
            names = dict.fromkeys(name for each in taken.values() for name in each.keywords)
            for name in names:
                refusing = next((text for text, each in taken.items() if name not in each.keywords), None)
                releases = [Version(each) for each in interfaces.releases(package)]
                refused = [each for each in releases if refusing and is_in(each, signatures[refusing])]
                if refused and name.isidentifier():
                    line = f"TypeError: {key}.__init__() got an unexpected keyword argument '{name}'"
                    yield line, f"{package} {refused[-1]}"


def own_examples(known: matrix.Matrix, rows: Corpus, every: int) -> Iterator[Weighed]:
    """Environments with what their run shows: of each so many entries an example that is affected, and its symptoms."""
    sources = {entry.id: entry for entry in read_entries(MATRIX).values()}
    examples = [
        (row, each.environment) for row in rows.rows for each in sources[row.id].cases[:1] if each.expect == "affected"
    ]
    for row, facts in examples[::every]:
        at = Location("log")
        seen = tuple(Sighting(name, name, at, "readings") for name in row.symptoms)
        text = " ".join(f"{name} {version}" for name, version in facts.get("distributions", {}).items())
        case = Case(Environment(facts), sightings=seen, texts=(("log", text),))
        context, found = weighings(case, known, rows)
        yield Weighed(_of_entry(row, text), context, found, [each.row.id == row.id for each in found])


def _raw(known: matrix.Matrix, row: Row) -> Mapping[str, Any]:
    (raw,) = known.read([row.at])
    entry: Mapping[str, Any] = raw
    return entry


def _of_entry(row: Row, text: str) -> WholeText:
    label = {"cause": {"packages": list(row.packages)}, "fix": {"packages": {}, "config": {}}}
    return WholeText(row.id, f"entry/{row.id}", "", "en", "own", text, label, "fit", "entries")
