"""Stage 2: what is known to be bad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from compatcheck.matrix._complete import complete
from compatcheck.matrix._load import Matrix, all_entries, candidates, find_entry, load, require_ids, search
from compatcheck.matrix._match import Occurrence, Verdict, any_of, match_table
from compatcheck.matrix._traits import trait_finder
from compatcheck.model import Environment, Finding, Location, Remedy

if TYPE_CHECKING:
    from compatcheck.matrix._entry import Entry
    from compatcheck.matrix._lint import Fault

__all__ = [
    "Matrix",
    "all_entries",
    "compile_folder",
    "complete",
    "find_entry",
    "lint_folder",
    "load",
    "match",
    "require_ids",
    "search",
]


def match(matrix: Matrix, environment: Environment) -> tuple[Finding, ...]:
    """Every entry that speaks of the environment, one finding for each place where it does.

    An entry is *affected* where all keys of one of its tables hold. It is *possible* where facts are missing and
    something more than the presence of a package already speaks for it.
    """
    traits = trait_finder(matrix.table)
    findings: list[Finding] = []
    known: dict[str, Verdict] = {}
    for candidate in candidates(matrix, environment):
        verdict = any_of(match_table(table, environment, traits, known) for table in candidate["affected"])
        if verdict.holds or (verdict.holds is None and verdict.narrowed):
            for raw in matrix.read([tuple(candidate["at"])]):
                findings += _findings(raw, verdict, environment)
    return tuple(findings)


def _findings(raw: dict[str, Any], verdict: Verdict, environment: Environment) -> Iterator[Finding]:
    from compatcheck.matrix._entry import Entry

    entry = Entry.model_validate(raw)
    for occurrence in verdict.occurrences or (None,):
        yield _finding(entry, verdict, occurrence, environment)


def _finding(entry: Entry, verdict: Verdict, occurrence: Occurrence | None, environment: Environment) -> Finding:
    remedies = tuple(remedy.remedy() for remedy in entry.remedies)
    if occurrence and occurrence.pins:
        remedies = (Remedy("pins", "what belongs together by its own metadata", occurrence.pins), *remedies)
    return Finding(
        id=entry.id,
        title=entry.title,
        status="affected" if verdict.holds else "possible",
        impact=entry.impact,
        confidence=entry.confidence,
        packages=occurrence.packages if occurrence else entry.distributions,
        summary=occurrence.summary if occurrence else entry.summary,
        missing=verdict.missing,
        remedies=remedies,
        evidence=tuple(dict.fromkeys(evidence.url for evidence in entry.evidence)),
        probe_name=entry.probe.name if entry.probe else None,
        probe_request=entry.probe.request if entry.probe else {},
        location=_location(verdict, environment),
    )


def _location(verdict: Verdict, environment: Environment) -> Location | None:
    """Where the user's own files state a fact that the matching table speaks of: a setting before a version."""
    paths = sorted(verdict.paths, key=lambda path: path.startswith("distributions."))
    return next((environment.locations[path] for path in paths if path in environment.locations), None)


def lint_folder(folder: str | None, probes: Sequence[str]) -> tuple[list[Fault], int]:
    """The faults of a folder of TOML sources (by default the checkout's), and how many entries it holds."""
    from datetime import datetime, timezone
    from pathlib import Path

    from compatcheck.matrix._compile import read_entries
    from compatcheck.matrix._lint import lint
    from compatcheck.matrix._load import source_folder

    source = source_folder(folder)
    entries = read_entries(Path(source))
    today = datetime.now(timezone.utc).date()
    return lint(entries, load(source).table, probes, today), len(entries)


def compile_folder(folder: str, destination: str) -> dict[str, Any]:
    """Compile TOML sources into the form the wheel carries; returns the index."""
    from pathlib import Path

    from compatcheck.matrix._compile import write_compiled
    from compatcheck.matrix._load import source_folder

    return write_compiled(Path(source_folder(folder)), Path(destination))
