"""What a person gives of a fault, of whatever kind, read into one case."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from compatcheck import bug_report, matrix, symptoms
from compatcheck.environment import Environment, Location
from compatcheck.environment.assumptions import assume_all
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_text
from compatcheck.matrix.matching.match import match_table
from compatcheck.pipelines.environment import Request, environment
from compatcheck.project import requirements
from compatcheck.project.sources import identify
from compatcheck.results.cases import Account, Case, Sighting
from compatcheck.results.logs import Hit, Log, Pattern, Run, Signature

Kind = Literal["project", "snapshot", "text", "log"]

_WORDS = (".txt", ".md", ".markdown", ".rst", ".log", ".out", ".err", ".html", ".htm", ".jsonl", "")
"""Endings of files that hold what people write or programs print, unless a list of packages is recognised."""


_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w, .-]*\])?\s*(?:[=<>!~]=|[<>])\s*[^\s;#]+\s*(?:[;#].*)?")

_WORD = re.compile(r"[A-Za-z]\w*(?:-\w+)*")
_LEAST_READINGS = 3
"""Readings from which the lines of a run are a program's own, in which no person says anything."""


class Given(NamedTuple):
    """What a person names: any mix of reports, logs, scripts, folders and snapshots, and an interpreter."""

    paths: tuple[str, ...]
    python: str | None = None
    snapshot: str | None = None
    assume: tuple[str, ...] = ()


class Reading(NamedTuple):
    """A case, the logs in it, and the environment of the files, the interpreter and the snapshot alone."""

    case: Case
    logs: tuple[Log, ...]
    named: Environment


class _Text(NamedTuple):
    text: str
    account: Account
    log: Log
    sightings: tuple[Sighting, ...]


def read_case(given: Given, known: matrix.Matrix) -> Reading:
    """Everything given as one case: what texts and logs say counts over files, and what is assumed over all.

    Raises `InputError` where something cannot be read.
    """
    kinds: dict[Kind, list[str]] = {"project": [], "snapshot": [], "text": [], "log": []}
    for path in _once(given.paths):
        kinds[_kind_of(path)].append(path)
    named = _named(given, kinds["project"], known)
    for path in kinds["snapshot"]:
        named = named.overlay(environment(known, (), Request(snapshot=path)).environment)
    patterns = matrix.patterns(known)
    texts = [_read_text(*bug_report.read_text_of_report(path), patterns) for path in kinds["text"]]
    logs = [symptoms.read(path, patterns) for path in kinds["log"]]
    case = _with_interface_errors(_joined(named, texts, logs, given.assume), known)
    return Reading(case, (*(each.log for each in texts), *logs), named)


def case_of_text(text: str, source: str, known: matrix.Matrix) -> Case:
    """The case of one text that is in memory."""
    return _with_interface_errors(
        _joined(Environment({}), [_read_text(text, source, matrix.patterns(known))], []), known
    )


def _with_interface_errors(case: Case, known: matrix.Matrix) -> Case:
    """The case with the line that misses something as one of the entry which knows the releases that have it."""
    at = case.environment.locations.get("interface_errors") or case.environment.locations.get("missing_names")
    if at is None:
        return case
    case = case._replace(environment=_with_named(case, known))
    judged, traits = matrix.infer(known, case.environment), matrix.trait_finder(known.table)
    hits = [
        Hit(row.id, occurrence.summary, at)
        for row in matrix.rows(known)
        if any("interface-of-other-releases" in table.get("traits", ()) for table in row.affected)
        for table in row.affected
        for occurrence in match_table(table, judged.view, traits, None, judged.inferred).occurrences
    ]
    return case._replace(hits=(*case.hits, *hits[:1]))


def _with_named(case: Case, known: matrix.Matrix) -> Environment:
    """The environment with the packages that the texts name, at each error that may be theirs."""
    errors = case.environment.get("interface_errors")
    if not isinstance(errors, (list, tuple)):
        return case.environment
    tables = known.table("interfaces/index").get("modules", {})
    words = {word.lower() for _, text in case.texts for word in _WORD.findall(text)}
    named = sorted({package for module, package in tables.items() if words & {module.lower(), package}})
    told = [{**each, "named": named} if named else each for each in errors]
    return case.environment.with_fact("interface_errors", told, case.environment.locations.get("interface_errors"))


def judged_log(logs: Iterable[Log]) -> Log | None:
    """The log that is judged: one with a fault before a healthy one, and one with a run before one without."""

    def order(log: Log) -> tuple[bool, bool, bool]:
        run = log.last
        return (run is None or run.signature.benign, not log.hits, run is None)

    return min(logs, key=order, default=None)


def _once(paths: Iterable[str]) -> Iterator[str]:
    """The paths less those of a file that came before."""
    seen: set[str] = set()
    for path in paths:
        real = path if path == "-" else os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            yield path


def _kind_of(path: str) -> Kind:
    """What an input is, by its name and its beginning; `-` is a text."""
    if path == "-" or not os.path.lexists(path):
        return "text"
    if os.path.isdir(path):
        return "project"
    ending = os.path.splitext(path)[1].lower()
    if ending == ".json":
        return _kind_of_json(path)
    if ending in _WORDS and not requirements.identify(path) and not _lists_packages(path):
        return _kind_by_size(path)
    try:
        identify(path)
    except InputError:
        return _kind_by_size(path)
    return "project"


def _size(path: str) -> int:
    """Bytes of an ordinary file; 0 for what is none, or leads nowhere: whoever reads it says so."""
    return os.path.getsize(path) if os.path.isfile(path) else 0


def _lists_packages(path: str) -> bool:
    """Whether every line of a small file requires a package, whatever the file is called."""
    if _size(path) > limits.UNNAMED_LIST_BYTES:
        return False
    try:
        with open_text(path, errors="strict") as stream:
            lines = [line.strip() for line in stream if line.strip() and not line.lstrip().startswith("#")]
    except (OSError, ValueError):
        return False
    return bool(lines) and all(_REQUIREMENT.fullmatch(line) for line in lines)


def _kind_by_size(path: str) -> Kind:
    return "log" if _size(path) > limits.REPORT_FILE_BYTES or symptoms.is_packed(path) else "text"


def _kind_of_json(path: str) -> Kind:
    """Readings of a Trainer, a report as GitHub gives it, a snapshot, or a configuration."""
    if _size(path) > limits.REPORT_FILE_BYTES:
        return "log"
    try:
        with open_text(path, errors="strict") as stream:
            document: Any = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return "text"
    if not isinstance(document, Mapping) or "body" in document or bug_report.is_thread(document):
        return "text"
    return "log" if "log_history" in document else "snapshot" if "schema_version" in document else "project"


def _named(given: Given, files: Sequence[str], known: matrix.Matrix) -> Environment:
    """The environment of an interpreter, a snapshot or files, empty where none is named."""
    if given.python is not None or given.snapshot is not None:
        return environment(known, tuple(files), Request(given.python, given.snapshot)).environment
    if files:
        from compatcheck.project.overlay import with_paths

        return with_paths(Environment({}), files)
    return Environment({})


def _read_text(text: str, source: str, patterns: Sequence[Pattern]) -> _Text:
    told = bug_report.lines_of_text(text)
    log = symptoms.read_text(told, source, patterns)
    runs = [range(run.first_line, run.last_line + 1) for run in log.runs if run.readings >= _LEAST_READINGS]
    words = symptoms.read_words(told, source)
    said = tuple(each for each in words if not any(each.location.line in run for run in runs))
    return _Text(told, bug_report.read_account(text, source), log, said)


def _joined(named: Environment, texts: Sequence[_Text], logs: Sequence[Log], assume: Sequence[str] = ()) -> Case:
    facts = named
    for each in texts:
        facts = facts.overlay(each.account.environment)
    every = (*(each.log for each in texts), *logs)
    told = tuple(sighting for each in texts for sighting in each.sightings)
    return Case(
        assume_all(_with_logs(_with_words(facts, told), every), assume),
        tuple(said for each in texts for said in each.account.said),
        tuple(contrast for each in texts for contrast in each.account.contrasts),
        tuple(variant for each in texts for variant in each.account.variants),
        (*told, *_sightings(every)),
        tuple(hit for log in every for hit in log.hits),
        (*((each.log.path, each.text) for each in texts), *((log.path, "\n".join(_errors(log))) for log in logs)),
    )


def _errors(log: Log) -> Iterator[str]:
    yield from (hit.text for hit in log.hits)
    for crash in log.crashes:
        yield from (crash.text, *crash.frames)


def _with_words(environment: Environment, told: Iterable[Sighting]) -> Environment:
    """The environment with the readings that symptoms in words amount to, each where it is first told."""
    for sighting in told:
        for name, value in symptoms.observed(sighting.symptom).items():
            path = f"training.observed.{name}"
            if not environment.states(path):
                environment = environment.with_fact(path, value, sighting.location)
    return environment


def _with_logs(environment: Environment, logs: Sequence[Log]) -> Environment:
    """The environment with what the logs state; what was observed is that of the judged log alone."""
    judged = judged_log(logs)
    for log in logs:
        if log is not judged:
            environment = environment.overlay(log.facts.without("training.observed"))
    return environment.overlay(judged.facts) if judged else environment


def _sightings(logs: Iterable[Log]) -> Iterator[Sighting]:
    """The symptoms that readings and errors of the last run of each log show."""
    for log in logs:
        run = log.last
        if run is None:
            continue
        for signature in (run.signature, *run.notes):
            for name in () if signature.benign else sorted(signature.symptoms):
                yield _sighting(name, signature, run, log)


def _sighting(name: str, signature: Signature, run: Run, log: Log) -> Sighting:
    if run.crash and run.crash.kind == signature.name:
        return Sighting(name, run.crash.text, run.crash.location, "error")
    at = run.onset.location if run.onset else Location(log.path, run.first_line)
    return Sighting(name, signature.words, at, "readings")
