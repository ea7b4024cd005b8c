"""The pipeline of `--fix`: write remedies, judge again, and keep what clears its finding and brings no other."""

from __future__ import annotations

import ast
import difflib
import functools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from compatcheck.advice import fixes
from compatcheck.environment import Environment
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.files import repository, storage
from compatcheck.files.reading import open_bytes, replaced
from compatcheck.results.findings import Finding, Remedy, Report

_Judge = Callable[[], Sequence[Report]]
_Why = Literal["no edit", "unsafe", "did not help"]


class Outcome(NamedTuple):
    """What came of one finding: the remedy that is written, or why none is."""

    finding: Finding
    remedy: Remedy | None
    why: _Why | None = None


class Fixes(NamedTuple):
    """The new texts of files by name, what they held before, and what came of each finding."""

    texts: Mapping[str, str]
    before: Mapping[str, str]
    outcomes: tuple[Outcome, ...]

    @property
    def fixed(self) -> tuple[Outcome, ...]:
        return tuple(each for each in self.outcomes if each.remedy)


def fix(judge: _Judge, known: fixes.Known, *, unsafe: bool) -> Fixes:
    """Try the remedies of each affected finding in their order; ``judge`` reads the files anew each time.

    No file is written: `write` does that.
    """
    read = functools.cache(_read)
    texts: dict[str, str] = {}
    outcomes: dict[int, Outcome] = {}
    reports = judge()
    every = list(_bad(reports))
    for allows_unsafe in (False, True) if unsafe else (False,):
        for at, (finding, _environment) in enumerate(every):
            if not _is_fixed(at, outcomes) and _count(reports, finding):
                moved, environment = _as_it_is_now(at, every, outcomes, reports)
                trial = _try(moved, environment, reports, judge, texts, read, known, unsafe=allows_unsafe)
                outcomes[at], texts, reports = trial.outcome._replace(finding=finding), trial.texts, trial.reports
    before = {path: read(path) or "" for path in texts}
    told = (outcomes[at] for at in sorted(outcomes))
    return Fixes(texts, before, tuple(each for each in told if each.remedy or _count(reports, each.finding)))


def _as_it_is_now(
    at: int,
    every: Sequence[tuple[Finding, Environment]],
    outcomes: Mapping[int, Outcome],
    reports: Sequence[Report],
) -> tuple[Finding, Environment]:
    """The finding with its present line: edits made for others may have moved it."""
    key = _key(every[at][0])
    left = [
        place for place, (finding, _) in enumerate(every) if _key(finding) == key and not _is_fixed(place, outcomes)
    ]
    now = [each for each in _bad(reports) if _key(each[0]) == key]
    return now[left.index(at)] if len(now) == len(left) else every[at]


def _is_fixed(at: int, outcomes: Mapping[int, Outcome]) -> bool:
    return at in outcomes and outcomes[at].remedy is not None


def difference(made: Fixes) -> str:
    """A unified diff, as `git apply` takes it."""
    return "".join(_difference(path, made.before[path], text) for path, text in made.texts.items())


def write(made: Fixes) -> None:
    """Write each file whole; those that were written are put back where one cannot be.

    Raises InputError where a file has changed since it was judged.
    """
    for path, text in made.before.items():
        if (_read(path) or "") != text:
            raise InputError("fixing", path, "the file changed while it was judged", "run this command again")
    done: list[str] = []
    try:
        for path, text in made.texts.items():
            storage.write(path, text)
            done.append(path)
    except CompatcheckError:
        for path in done:
            storage.write(path, made.before[path])
        raise


class _Trial(NamedTuple):
    outcome: Outcome
    texts: dict[str, str]
    reports: Sequence[Report]


def _try(
    finding: Finding,
    environment: Environment,
    reports: Sequence[Report],
    judge: _Judge,
    texts: dict[str, str],
    read: Callable[[str], str | None],
    known: fixes.Known,
    *,
    unsafe: bool,
) -> _Trial:
    why: _Why = "no edit"
    place = fixes.Place(environment, lambda path: texts.get(path, read(path)), known)
    for remedy in finding.remedies:
        for edits in fixes.candidates(finding, remedy, place, unsafe=unsafe):
            why = "did not help" if why == "no edit" else why
            tried = {**texts, **edits}
            if not all(_still_parses(path, text) for path, text in edits.items()):
                continue
            after = _judged(judge, tried)
            if after is not None and _helps(finding, remedy, reports, after):
                return _Trial(Outcome(finding, remedy), tried, after)
        if not unsafe and next(fixes.candidates(finding, remedy, place, unsafe=True), None):
            why = "unsafe"
    return _Trial(Outcome(finding, None, why), texts, reports)


def _judged(judge: _Judge, texts: Mapping[str, str]) -> Sequence[Report] | None:
    with replaced(texts):
        try:
            return judge()
        except CompatcheckError:
            return None


def _helps(finding: Finding, remedy: Remedy, before: Sequence[Report], after: Sequence[Report]) -> bool:
    """Whether the finding is gone, no bad one came, and the settings that the remedy names are what it wants."""
    counted = _bad_count if remedy.action else _count
    if counted(after, finding) >= counted(before, finding):
        return False
    if Counter(_key(each) for each, _ in _bad(after)) - Counter(_key(each) for each, _ in _bad(before)):
        return False
    stated = {path: value for path, value in remedy.config.items() if isinstance(value, (bool, int, float, str))}
    return any(
        all(report.judged.view.get(path) in (value, "auto") for path, value in stated.items()) for report in after
    )


def _bad(reports: Sequence[Report]) -> Iterator[tuple[Finding, Environment]]:
    for report in reports:
        for finding in report.bad:
            yield finding, report.judged.view


def _count(reports: Sequence[Report], finding: Finding) -> int:
    """How often the finding is there, possible ones included: an edit that hides a fact is no remedy."""
    return sum(_key(each) == _key(finding) for report in reports for each in report.findings)


def _bad_count(reports: Sequence[Report], finding: Finding) -> int:
    """How often the finding is affected: a keyword that the release refuses is no fact that its removal hides."""
    return sum(_key(each) == _key(finding) for each, _ in _bad(reports))


def _key(finding: Finding) -> tuple[str, str]:
    return finding.id, finding.location.file if finding.location else ""


def _read(path: str) -> str | None:
    """The text with its line ends; None for what is no text, and where a link leads out of the folder."""
    try:
        if repository.leads_out(path):
            return None
        with open_bytes(path) as stream:
            return stream.read().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _still_parses(path: str, text: str) -> bool:
    """Whether a file of a format with a grammar is still one."""
    import tomlkit
    import yaml

    parse: dict[str, Callable[[str], object]] = {
        ".py": ast.parse,
        ".json": json.loads,
        ".yaml": yaml.compose,
        ".yml": yaml.compose,
        ".toml": tomlkit.parse,
    }
    try:
        parse.get(os.path.splitext(path)[1], str)(text)
    except (SyntaxError, ValueError, RecursionError, yaml.YAMLError):
        return False
    return True


def _difference(path: str, before: str, after: str) -> str:
    name = os.path.relpath(path)
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
