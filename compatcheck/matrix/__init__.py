"""Stage 2: what is known to be bad."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.environment.paths import distribution_of
from compatcheck.inference import infer as _infer
from compatcheck.inference.inferred import Judged
from compatcheck.inference.report_date import day_of_report
from compatcheck.language import ENGLISH, current, marked
from compatcheck.language import gettext as _
from compatcheck.matrix._traits import trait_finder
from compatcheck.matrix.loading import (
    FORMAT,
    Matrix,
    all_entries,
    candidates,
    find_entry,
    in_language,
    is_stale,
    load,
    records,
    require_ids,
    require_installed,
    search,
    source_folder,
    withdrawn_entries,
)
from compatcheck.matrix.matching.by_day import Releases, existing_first
from compatcheck.matrix.matching.held_facts import held_facts
from compatcheck.matrix.matching.match import (
    Conditions,
    Occurrence,
    Verdict,
    any_of,
    is_reported,
    match_table,
    status_of,
)
from compatcheck.matrix.rows import split_words
from compatcheck.results.findings import Finding, Remedy

if TYPE_CHECKING:
    from packaging.version import Version

    from compatcheck.matrix._survey import Reach
    from compatcheck.matrix.lint import Fault
    from compatcheck.matrix.rows import Postings, Row
    from compatcheck.packages.versions import Interval
    from compatcheck.results.logs import Pattern

__all__ = [
    "ARCHIVE",
    "Matrix",
    "all_entries",
    "find_entry",
    "finding_of",
    "impacts",
    "infer",
    "in_language",
    "interval",
    "is_stale",
    "lint_folder",
    "load",
    "judge",
    "misleading",
    "patterns",
    "postings",
    "records",
    "release_days",
    "require_ids",
    "require_installed",
    "rows",
    "ruled_out",
    "search",
    "source_folder",
    "split_words",
    "survey",
    "trait_finder",
    "withdrawn_entries",
    "within",
]

ARCHIVE = f"matrix-{FORMAT}.zip"
"""The name under which the compiled form is published; another form has another name."""


_WRITTEN = marked("the form that the stated release accepts")


class Judgement(NamedTuple):
    """An environment with what follows from its facts, and what the matrix finds in it."""

    judged: Judged
    findings: tuple[Finding, ...]


def infer(matrix: Matrix, environment: Environment) -> Judged:
    """The environment with what its own facts imply by the tables of the matrix."""
    return _infer.infer(environment, matrix.table, matrix.guards)


def judge(matrix: Matrix, environment: Environment) -> Judgement:
    """What follows from the stated facts, and every entry that speaks of them; see `_match`."""
    judged = infer(matrix, environment)
    return Judgement(judged, _match(matrix, judged))


def release_days(matrix: Matrix) -> Releases:
    """The day of each release by package and version; none of a small matrix of one's own that lacks the table."""
    days: Releases = matrix.table("release-history")["releases"] if "release-history" in matrix.tables else {}
    return days


def _match(matrix: Matrix, judged: Judged) -> tuple[Finding, ...]:
    """Every entry that speaks of the environment, one finding for each place where it does.

    An entry is *affected* where all keys of one of its tables hold. It is *possible* where facts are missing and
    something more than the presence of a package already speaks for it, and where nobody has confirmed the report that
    it stands on.
    """
    traits = trait_finder(matrix.table)
    releases = release_days(matrix)
    findings: list[Finding] = []
    known: dict[str, Verdict] = {}
    for candidate in candidates(matrix, judged.view):
        tables = candidate["affected"]
        verdicts = [match_table(table, judged.view, traits, known, judged.inferred) for table in tables]
        verdict = any_of(verdicts)
        if is_reported(verdict):
            ranges = tuple(_ranges(table) for table, each in zip(tables, verdicts) if each.holds is verdict.holds)
            for raw in matrix.read([tuple(candidate["at"])]):
                findings += _findings(in_language(matrix, raw), _translated(matrix, verdict), ranges, judged, releases)
    return tuple(findings)


def _translated(matrix: Matrix, verdict: Verdict) -> Verdict:
    """The verdict with the notes of its occurrences in the language in use, as far as they are translated."""
    if current() == ENGLISH or not any(each.note or each.remedies for each in verdict.occurrences):
        return verdict
    texts = matrix.texts(current())
    return verdict._replace(
        occurrences=tuple(
            each._replace(
                note=texts.get(each.note, each.note),
                remedies=tuple({**way, "why": texts.get(way["why"], way["why"])} for way in each.remedies),
            )
            for each in verdict.occurrences
        )
    )


def _ranges(table: Conditions) -> dict[str, str]:
    """The versions that a table speaks of, by the name of the distribution."""
    return {name: condition for path, condition in table.items() if (name := distribution_of(path))}


def _findings(
    raw: Mapping[str, Any],
    verdict: Verdict,
    ranges: tuple[Mapping[str, str], ...],
    judged: Judged,
    releases: Releases,
) -> Iterator[Finding]:
    for occurrence in verdict.occurrences or (None,):
        yield _finding(raw, verdict, occurrence, judged, releases)._replace(ranges=ranges)


def _finding(
    raw: Mapping[str, Any], verdict: Verdict, occurrence: Occurrence | None, judged: Judged, releases: Releases
) -> Finding:
    """The finding of an entry in its compiled form, which was validated when it was compiled or fetched."""
    remedies = tuple(map(_remedy, raw["remedies"]))
    probe = raw.get("probe") or {}
    note, source = (occurrence.note, occurrence.source) if occurrence else ("", "")
    if occurrence:
        ways = (pins for pins in (occurrence.pins, occurrence.instead) if pins)
        first = [_remedy(way) for way in occurrence.remedies if way.get("first")]
        others = [_remedy(way) for way in occurrence.remedies if not way.get("first")]
        remedies = (*first, *(Remedy("pins", _(occurrence.why), pins) for pins in ways), *others, *remedies)
        if occurrence.config:
            remedies = (Remedy("config", _(occurrence.why), config=occurrence.config), *remedies)
        if occurrence.code:
            remedies = (Remedy("code", _(_WRITTEN), code=occurrence.code), *remedies)
    return Finding(
        id=raw["id"],
        title=raw["title"],
        status=status_of(verdict, raw["confidence"]),
        impact=raw["impact"],
        confidence=raw["confidence"],
        packages=occurrence.packages if occurrence else tuple(raw["packages"]),
        summary=" ".join((_(occurrence.summary) if occurrence else raw["summary"], *_partly(verdict))),
        missing=tuple(dict.fromkeys(verdict.missing)),
        remedies=existing_first(remedies, day_of_report(judged.view), releases),
        evidence=tuple(dict.fromkeys(filter(None, (source, *(evidence["url"] for evidence in raw["evidence"]))))),
        probe_name=probe.get("name"),
        probe_request=probe.get("request", {}),
        location=_location(verdict, occurrence, judged.view),
        partly=verdict.partly,
        mechanism=" ".join(filter(None, (note, raw["mechanism"]))),
        seen=occurrence is not None,
        because=held_facts(verdict, judged),
    )


def _remedy(stated: Mapping[str, Any]) -> Remedy:
    contents = {key: stated[key] for key in ("pins", "config", "environ", "code") if stated.get(key)}
    kind = next(iter(contents), stated.get("kind") or "code")
    return Remedy(kind, stated["why"], **contents, action=stated.get("action"))


def _partly(verdict: Verdict) -> Iterator[str]:
    """Which part of the ranges that are asked for is at fault, as sentences."""
    for path, words in verdict.partly.items():
        yield _("The project's {name} {words}.").format(name=path.removeprefix("distributions."), words=words)


def _location(verdict: Verdict, occurrence: Occurrence | None, environment: Environment) -> Location | None:
    """Where the user's own files state a fact that the matching table speaks of: a trait, a setting, then a version.

    One that no file gives in so many words has the place of its section, and a section that of the first it holds.
    What a trait saw has its own place, or that of the release it speaks of.
    """
    if occurrence and occurrence.location:
        return occurrence.location
    places = [
        ((*_rank(path), distance), at)
        for path in verdict.paths
        for distance, at in _places(path, environment.locations)
    ]
    if places:
        return min(places, key=lambda place: place[0])[1]
    versions = (f"distributions.{name}" for name in (occurrence.packages if occurrence else ()))
    return next((at for path in versions if (at := environment.locations.get(path))), None)


def _rank(path: str) -> tuple[bool, ...]:
    """The place of a trait is the fault itself, that of a setting what leads to it; the framework's says the least."""
    is_trait, is_setting = path.startswith(("model.traits.", "trainer.traits.")), path.startswith("training.")
    return not is_trait, path.startswith("distributions."), not is_setting, path == "training.framework"


def _places(path: str, locations: Mapping[str, Location]) -> Iterator[tuple[int, Location]]:
    if path in locations:
        yield 0, locations[path]
    elif not path.startswith("distributions."):
        inside = [at for fact, at in locations.items() if fact.startswith(f"{path}.")]
        section = path.rpartition(".")[0]
        if inside:
            yield 1, min(inside, key=lambda at: (at.line is None, at.line or 0))
        elif "." in section and section in locations:
            yield 2, locations[section]


def finding_of(matrix: Matrix, row: Row, verdict: Verdict, judged: Judged) -> Finding:
    """The entry of a row, read whole, with what a verdict on it says of the environment."""
    (raw,) = matrix.read([row.at])
    releases = release_days(matrix)
    shown = in_language(matrix, raw)
    return _finding(shown, verdict, next(iter(_translated(matrix, verdict).occurrences), None), judged, releases)


def misleading(matrix: Matrix, row: Row) -> tuple[str, ...]:
    """Advice that is often given for the fault of an entry and does not help."""
    (raw,) = matrix.read([row.at])
    return tuple(in_language(matrix, raw).get("misleading", ()))


def ruled_out(matrix: Matrix, judged: Judged, ids: Collection[str]) -> dict[str, bool]:
    """For each of the ids that an entry has, whether it is known not to speak of the environment."""
    traits = trait_finder(matrix.table)
    known: dict[str, Verdict] = {}

    def fails(tables: Iterable[Conditions]) -> bool:
        verdicts = (match_table(each, judged.view, traits, known, judged.inferred) for each in tables)
        return any_of(verdicts).holds is False

    return {raw["id"]: "withdrawn" in raw or fails(raw["affected"]) for raw in matrix.read(None) if raw["id"] in ids}


def patterns(matrix: Matrix) -> tuple[Pattern, ...]:
    """The error patterns of all entries."""
    return matrix.patterns()


def rows(matrix: Matrix) -> tuple[Row, ...]:
    """What a ranking reads of each entry in force, in the order of their ids; nothing is validated."""
    return matrix.rows()


def postings(matrix: Matrix) -> Postings:
    """The words of entries, each with the rows that hold it."""
    return matrix.postings()


def survey(
    matrix: Matrix, shared: Sequence[Sequence[Mapping[str, object]]], added: Sequence[Sequence[Mapping[str, object]]]
) -> list[list[Reach]]:
    """What `judge` would find for every combination of choices, entry by entry, one list for each dimension added.

    A choice is a part of a snapshot; an environment is one choice of each shared dimension and one of an added one,
    joined.
    """
    from compatcheck.matrix import _survey

    return _survey.survey(matrix, shared, added)


def within(condition: str, version: str) -> bool:
    """Whether a release lies in a range of versions as entries state it."""
    from compatcheck.packages.versions import contains, parse_range

    parsed = _parsed(version)
    return parsed is not None and contains(parse_range(condition), parsed)


@lru_cache(20_000)
def _parsed(version: str) -> Version | None:
    from compatcheck.packages.versions import parse_version

    return parse_version(version)


def lint_folder(folder: str | None, probes: Sequence[str], only: Sequence[str] = ()) -> tuple[list[Fault], int]:
    """The faults of a folder of TOML sources (by default the checkout's), and how many entries were looked at.

    Raises InputError where no entry is there, or none of the name of one of ``only``.
    """
    from datetime import datetime, timezone
    from functools import cache, partial
    from pathlib import Path

    from compatcheck.errors import InputError
    from compatcheck.matrix.compile import read_sources
    from compatcheck.matrix.lint import lint
    from compatcheck.matrix.loading import read_source_table, source_folder

    source = Path(source_folder(folder))
    entries, withdrawn = read_sources(source)
    if not entries:
        raise InputError(
            "reading the matrix in", str(source), "the folder contains no entry", "pass a folder of matrix sources"
        )
    lacking = sorted({*only} - {each.id for each in entries.values()} - {each.id for each in withdrawn.values()})
    if lacking:
        raise InputError(
            "reading the matrix in", str(source), f"there is no {lacking[0]}", "use ids of existing entries"
        )
    today = datetime.now(timezone.utc).date()
    table = cache(partial(read_source_table, str(source)))
    return lint(entries, table, probes, today, only, withdrawn), len({*only} or (*entries, *withdrawn))


def interval(condition: str) -> Interval | None:
    """The versions that a condition such as ``>=2.5.0,<2.5.1`` speaks of; None where there are none."""
    from compatcheck.packages.versions import interval_of, parse_range

    return interval_of(parse_range(condition))


def impacts() -> tuple[str, ...]:
    """What an entry may name as the worst that a user meets."""
    from typing import get_args

    from compatcheck.matrix.entry import Impact

    return get_args(Impact)
