"""Prove each entry by its own examples: that it says what it means, and no more.

A schema cannot see that a condition can never hold, or that a key does nothing; databases of rules rotted that way.
So every key, and every bound of a range, must change the verdict on some example when it is left out, and every
remedy must clear the examples it is for without walking into another entry.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from compatcheck.environment import Environment
from compatcheck.environment.vocabulary import keys, kind_of
from compatcheck.matrix._quoted_messages import quoted_messages
from compatcheck.matrix._regex import without_name
from compatcheck.matrix._traits import Table, trait_finder
from compatcheck.matrix.entry import Entry, Example, RemedyEntry
from compatcheck.matrix.matching.match import Verdict, match_table
from compatcheck.packages.frameworks import foundations, framework_of, frameworks
from compatcheck.packages.names import edge
from compatcheck.packages.versions import is_range
from compatcheck.results.logs import ERROR_MARKS, LONGEST_MATCHED

REVIEW_DAYS = 180
_EXPECTATIONS = {True: "affected", False: "unaffected", None: "undetermined"}
_RUN_FACTS = ("training.", "model.")
_SUPPORTED_PARTS = ("affected", "impact", "mechanism", "misleading", "probe", "remedies", "summary", "symptoms")


_REPOSITORY = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")
_MET_BY_USERS = ("maintainer", "report", "upstream-fix")
_SEEN_BY_USERS = {"affected", "impact", "summary", "symptoms"}


class Fault(NamedTuple):
    """What is wrong with an entry; a stale one asks for a new look and is no error."""

    id: str
    text: str
    stale: bool = False


class _Other(NamedTuple):
    """An entry that a remedy may walk into, with the facts that each of its tables cannot hold without."""

    entry: Entry
    paths: frozenset[str]
    needed: tuple[frozenset[str], ...]


def lint(
    entries: Mapping[Path, Entry], table: Table, probes: Sequence[str], today: date, only: Sequence[str] = ()
) -> list[Fault]:
    """Every fault of the entries ``only``, or of all, each beside the whole matrix. ``probes`` are those there are."""
    active = [_other(entry) for entry in entries.values() if entry.withdrawn is None]
    patterns = _patterns(other.entry for other in active)
    faults: list[Fault] = []
    for path, entry in entries.items():
        if only and entry.id not in only:
            continue
        rules: tuple[Iterable[str], ...] = (
            _misplaced(path, entry),
            _unfinished(path, entry),
            _unsupported(entry),
            _unknown_frameworks(entry),
            _unreached_evidence(entry),
            _records_that_bear_nothing(path, entry),
            _unknown_probe(entry, probes),
            _unknown_symptoms(entry, table),
            _false_patterns(entry),
            _messages_of_others(entry, patterns),
            _false_examples(entry, table),
            _idle_conditions(entry, table),
            _bad_remedies(entry, active, table),
        )
        faults += [Fault(entry.id, text) for rule in rules for text in rule]
        faults += [Fault(entry.id, text, stale=True) for text in _stale(entry, today)]
    if only:
        return faults
    faults += [Fault("tables/relevance.toml", text) for text in _idle_relevance(table)]
    return faults + [Fault("tables/symptoms.toml", text) for text in _ambiguous_symptoms(table)]


def _idle_relevance(table: Table) -> Iterator[str]:
    """A path that no condition can have, or a value that its fact cannot, says nothing."""
    known = table("relevance")
    sections = {section for path in keys() for section in (path, path.rpartition(".")[0])}
    suggesting = (path for paths in known["off_unless_asked"].values() for path in paths)
    for path in (*known["off_unless_asked"], *suggesting, *known["chosen_by_few"], *known["switches"].values()):
        if kind_of(path) is None:
            yield f"there is no fact {path}"
    yield from (f"there is no fact below {path}" for path in known["own_settings"].values() if path not in sections)
    for path, values in known["chosen_by_few"].items():
        numeric = kind_of(path) == "number"
        yield from (f"{path} cannot be {value!r}" for value in values if numeric != isinstance(value, int))


def _ambiguous_symptoms(table: Table) -> Iterator[str]:
    """A word replaced twice, or still in use, an implied symptom that is not there, and an unknown fact."""
    known = table("symptoms")["symptoms"]
    replaced = Counter(word for symptom in known.values() for word in symptom.get("replaces", ()))
    yield from (f"{word!r} is replaced twice" for word, count in replaced.items() if count > 1)
    yield from (f"{word!r} is a symptom and cannot be replaced" for word in replaced if word in known)
    implied = {word for symptom in known.values() for word in symptom.get("implies", ())}
    yield from (f"there is no symptom {word!r} to imply" for word in sorted(implied - known.keys()))
    facts = {f"training.observed.{name}" for symptom in known.values() for name in symptom.get("observed", ())}
    yield from (f"there is no fact {path}" for path in sorted(facts) if kind_of(path) is None)


def _misplaced(path: Path, entry: Entry) -> Iterator[str]:
    if path.stem != entry.id:
        yield f"the file is named {path.name}, not {entry.id}.toml"
    if path.parent.name not in entry.distributions:
        yield f"it lies in {path.parent.name}/, which is none of its packages: {', '.join(entry.distributions)}"


def _unfinished(path: Path, entry: Entry) -> Iterator[str]:
    """What a draft leaves to be filled in, and what it asks in comments."""
    texts = {"title": [entry.title], "summary": [entry.summary], "mechanism": [entry.mechanism]}
    texts |= {f"remedies.{n}": [each.why, each.code or ""] for n, each in enumerate(entry.remedies, 1)}
    yield from (f"{part} is still to be written" for part, parts in texts.items() if any("TODO" in t for t in parts))
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    notes = (line.strip() for line in lines if line.lstrip().startswith("# TODO"))
    yield from (f"settle and drop the comment {note!r}" for note in notes)


def _unsupported(entry: Entry) -> Iterator[str]:
    """Evidence must name parts that exist, bear the range, and be worth the confidence claimed."""
    parts = [part for evidence in entry.evidence for part in evidence.supports]
    for part in parts:
        name, _, number = part.partition(".")
        items = getattr(entry, name, ()) if name in ("affected", "remedies") else ()
        if name not in _SUPPORTED_PARTS or (number and not 1 <= int(number) <= len(items)):
            yield f"evidence supports {part!r}, which the entry does not have"
    if not any(part.partition(".")[0] == "affected" for part in parts):
        yield "no evidence supports the affected range"
    kinds = [evidence.kind for evidence in entry.evidence]
    if entry.confidence == "upstream-fixed" and not {"upstream-fix", "source", "documentation"} & set(kinds):
        yield "confidence upstream-fixed needs evidence of an upstream fix"
    if entry.confidence == "reproduced" and "reproduction" not in kinds:
        yield "confidence reproduced needs a reproduction as evidence"
    if entry.confidence == "corroborated" and len(set(kinds)) < 2:
        yield "confidence corroborated needs evidence of two kinds"


def _unknown_frameworks(entry: Entry) -> Iterator[str]:
    """A value that no framework has can never hold."""
    for conditions in entry.affected:
        for path in ("training.framework", "training.runs_on"):
            for value in _allowed(conditions, path):
                known = framework_of(value)
                if known is None or (path == "training.runs_on" and known.name != value):
                    yield f"{path} is {value!r}, for which there is no file in frameworks/"


def _unreached_evidence(entry: Entry) -> Iterator[str]:
    """The users of a framework that met the fault must be reached, or those of one that runs on it.

    A framework that only explains the fault, and does not have it, says so in an unaffected example.
    """
    if not all({"training.framework", "training.runs_on"} & conditions.keys() for conditions in entry.affected):
        return
    spared = {Environment(each.environment).get("training.framework") for each in _unaffected(entry)}
    for evidence in entry.evidence:
        framework = _framework_of_repository(evidence.url)
        if not framework or evidence.kind not in _MET_BY_USERS:
            continue
        seen = not _SEEN_BY_USERS.isdisjoint(part.partition(".")[0] for part in evidence.supports)
        if any(_reaches(conditions, framework) for conditions in entry.affected) or (framework in spared and not seen):
            continue
        yield f"{evidence.url} met it with {framework}, whose users no table reaches"


def _unaffected(entry: Entry) -> list[Example]:
    return [example for example in entry.examples if example.expect == "unaffected"]


def _reaches(conditions: Mapping[str, object], framework: str) -> bool:
    named, below = _allowed(conditions, "training.framework"), _allowed(conditions, "training.runs_on")
    return (
        framework in named
        or bool({framework, *foundations(framework)}.intersection(below))
        or any(framework in foundations(each) for each in (*named, *below))
    )


def _allowed(conditions: Mapping[str, Any], path: str) -> list[str]:
    condition = conditions.get(path, [])
    if condition in ("present", "absent"):
        return []
    return condition if isinstance(condition, list) else [condition]


@cache
def _framework_of_repository(url: str) -> str | None:
    place = _REPOSITORY.match(url)
    wanted = place[1].lower() if place else ""
    own = (each for each in frameworks().values() if not each.library)
    return next((each.name for each in own if wanted in map(str.lower, each.repositories)), None)


def _records_that_bear_nothing(path: Path, entry: Entry) -> Iterator[str]:
    """A record must be there and, where it is that of one entry's reproduction, have seen the fault."""
    for evidence in (each for each in entry.evidence if each.url.startswith("records/")):
        try:
            record = json.loads((path.parent.parent / evidence.url).read_text(encoding="utf-8"))
        except FileNotFoundError:
            yield f"there is no record {evidence.url}"
            continue
        except (OSError, ValueError) as error:
            yield f"record {evidence.url} cannot be read: {error}"
            continue
        verdict = record.get("verdict", "reproduced") if isinstance(record, dict) else "no record"
        if verdict != "reproduced":
            yield f"record {evidence.url} says {verdict!r}, which is no evidence"


def _unknown_probe(entry: Entry, probes: Sequence[str]) -> Iterator[str]:
    if entry.probe and entry.probe.name not in probes:
        yield f"there is no probe {entry.probe.name!r}"
    if entry.reproduce and not entry.probe:
        yield "it can be reproduced but names no probe to do it with"


def _unknown_symptoms(entry: Entry, table: Table) -> Iterator[str]:
    known = table("symptoms")["symptoms"]
    better = {word: name for name, symptom in known.items() for word in symptom.get("replaces", ())}
    for word in entry.symptoms:
        if word in better:
            yield f"the symptom {word!r} is called {better[word]!r}"
        elif word not in known:
            yield f"there is no symptom {word!r} in tables/symptoms.toml"


def _false_patterns(entry: Entry) -> Iterator[str]:
    """A pattern must match its own example, a line as a log shows it, and none of the lines it is told not to.

    A log is read line by line: those with a mark of an error, and all of a traceback, whose frames are set in.
    """
    for number, pattern in enumerate(entry.error_patterns, 1):
        regex = re.compile(pattern.regex)
        if len(pattern.example) > LONGEST_MATCHED or not regex.search(pattern.example):
            yield f"error pattern {number} does not match its example"
        if "\n" in pattern.example:
            yield f"error pattern {number}: its example is of several lines, and a log is read line by line"
        if not pattern.example.startswith("  ") and not any(mark in pattern.example for mark in ERROR_MARKS):
            yield f"error pattern {number}: its example holds no mark of an error, so it is never tried"
        for line in pattern.not_examples:
            if regex.search(line):
                yield f"error pattern {number} matches {line!r}, which it must not"


def _patterns(entries: Iterable[Entry]) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (entry.id, re.compile(without_name(pattern.regex, pattern.not_examples), re.IGNORECASE | re.ASCII))
        for entry in entries
        for pattern in entry.error_patterns
    ]


def _messages_of_others(entry: Entry, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> Iterator[str]:
    """A message that the entry quotes must not lead to others alone, unless it says that it means another line."""
    if entry.withdrawn:
        return
    lines = [line for pattern in entry.error_patterns for line in (pattern.example, *pattern.not_examples)]
    for message in quoted_messages(entry):
        owners = sorted({name for name, regex in patterns if regex.search(message)})
        parts = [part.strip().lower() for part in message.split("...")]
        shown = any(all(part in line.lower() for part in parts) for line in lines)
        if owners and entry.id not in owners and not shown:
            yield f"it quotes {message!r}, which only the pattern of {owners[0]} matches"


def _false_examples(entry: Entry, table: Table) -> Iterator[str]:
    for number, example in enumerate(entry.examples, 1):
        seen = _verdict(entry.affected, example, table)
        if seen != example.expect:
            yield f"example {number} is {seen}, not {example.expect}"
    lacking = set(_EXPECTATIONS.values()) - {example.expect for example in entry.examples}
    if lacking:
        yield f"no example is {' or '.join(sorted(lacking))}"
    for number, conditions in enumerate(entry.affected, 1):
        if not any(_verdict([conditions], example, table) == "affected" for example in entry.examples):
            yield f"no example is affected by table {number}"


def _idle_conditions(entry: Entry, table: Table) -> Iterator[str]:
    judged = [[_holds(each, example, table) for each in entry.affected] for example in entry.examples]
    for number, conditions in enumerate(entry.affected):
        others = [[*holds[:number], *holds[number + 1 :]] for holds in judged]
        for what, fewer in _without_one(conditions):
            if all(
                _best(holds) == _best([_holds(fewer, example, table), *rest])
                for example, holds, rest in zip(entry.examples, judged, others)
            ):
                yield f"table {number + 1}: no example changes without {what}"


def _without_one(conditions: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, object]]]:
    """The table less one key, one bound of a range or one of several traits, each with the name of what is left out.

    The presence of a package beside a trait stays: it says when the trait need not be computed at all.
    """
    for path, condition in conditions.items():
        if condition == "present" and "traits" in conditions:
            continue
        yield path, {key: value for key, value in conditions.items() if key != path}
        bounds = condition.split(",") if isinstance(condition, str) and is_range(condition) else []
        for bound in bounds if len(bounds) > 1 else ():
            rest = ",".join(other for other in bounds if other != bound)
            yield f"{path} {bound}", {**conditions, path: rest}
    for trait in conditions.get("traits", ()) if len(conditions.get("traits", ())) > 1 else ():
        yield (
            f"the trait {trait}",
            {**conditions, "traits": [other for other in conditions["traits"] if other != trait]},
        )


def _bad_remedies(entry: Entry, active: Sequence[_Other], table: Table) -> Iterator[str]:
    harmed = [example for example in entry.examples if example.expect == "affected"]
    for number, remedy in enumerate(entry.remedies, 1):
        if not (remedy.pins or remedy.config or remedy.environ):
            continue
        touched = [other for other in active if _speaks_of(other.paths, remedy)]
        for example in harmed:
            try:
                cured = apply_remedy(remedy, example)
            except ValueError as error:
                yield f"remedy {number}: {error}"
                break
            yield from (f"remedy {number}: {text}" for text in _still_bad(entry, example, cured, touched, table))


def _speaks_of(paths: frozenset[str], remedy: RemedyEntry) -> bool:
    """Whether the remedy changes a fact that a verdict on these can hang on; a trait may hang on any."""
    changed = (
        *(f"distributions.{name}" for name in remedy.pins),
        *(f"environ.{name}" for name in remedy.environ),
        *remedy.config,
    )
    return "traits" in paths or any(
        path.startswith(fact) or fact.startswith(path) for path in paths for fact in changed
    )


def _still_bad(entry: Entry, before: Example, after: Example, active: Sequence[_Other], table: Table) -> Iterator[str]:
    if _verdict(entry.affected, after, table) != "unaffected":
        yield f"does not clear the example {before.environment}"
    environment, traits, known = Environment(after.environment), trait_finder(table), dict[str, Verdict]()
    stated = _stated_facts(after.environment)
    for other, _, needed in active:
        may_hold = (each for each, facts in zip(other.affected, needed) if facts <= stated)
        becomes = any(match_table(each, environment, traits, known).holds for each in may_hold)
        if becomes and other.id != entry.id and _verdict(other.affected, before, table) != "affected":
            yield f"walks into {other.id} ({other.title})"


def _other(entry: Entry) -> _Other:
    paths = frozenset(path for table in entry.affected for path in table)
    return _Other(entry, paths, tuple(_needed(table) for table in entry.affected))


def _needed(conditions: Mapping[str, Any]) -> frozenset[str]:
    """The packages without which a table cannot hold, and what must be told of the training and of the model."""
    packages = {path for path, value in conditions.items() if path.startswith("distributions.") and value != "absent"}
    facts = {path for path in conditions if path.startswith(_RUN_FACTS) and path != "training.world_size"}
    return frozenset(packages | {".".join(path.split(".")[:2]) for path in facts})


def _stated_facts(environment: Mapping[str, Any]) -> set[str]:
    packages = (*environment.get("distributions", ()), *environment.get("distribution_ranges", ()))
    facts = {f"{section}{fact}" for section in _RUN_FACTS for fact in environment.get(section[:-1], ())}
    return facts.union(f"distributions.{name}" for name in packages)


def apply_remedy(remedy: RemedyEntry, example: Example) -> Example:
    """The example after the remedy. Raises ValueError where a pin names no version that can be tried."""
    pinned = {f"distributions.{name}": _edge(specifier) for name, specifier in remedy.pins.items()}
    variables = {f"environ.{name}": value for name, value in remedy.environ.items()}
    environment = Environment(example.environment)
    for path, value in {**pinned, **variables, **remedy.config}.items():
        environment = environment.with_fact(path, value)
    return example.model_copy(update={"environment": environment.facts})


def _edge(specifier: str) -> str:
    version = edge(specifier)
    if version is None:
        raise ValueError(f"{specifier!r} names no version that is itself allowed; write '<=X' instead of '<Y'")
    return version


def _stale(entry: Entry, today: date) -> Iterator[str]:
    age = (today - entry.reviewed).days
    if age > REVIEW_DAYS and any(_is_open(conditions) for conditions in entry.affected):
        yield f"a range is open to newer releases and was last reviewed {age} days ago"


def _is_open(conditions: Mapping[str, Any]) -> bool:
    ranges = [value for path, value in conditions.items() if path.startswith("distributions.")]
    return bool(ranges) and not any("<" in value or "==" in value for value in ranges)


def _verdict(tables: Iterable[Mapping[str, Any]], example: Example, table: Table) -> str:
    return _EXPECTATIONS[_best([_holds(conditions, example, table) for conditions in tables])]


def _holds(conditions: Mapping[str, object], example: Example, table: Table) -> bool | None:
    return match_table(conditions, Environment(example.environment), trait_finder(table)).holds


def _best(several: Sequence[bool | None]) -> bool | None:
    """Of several tables: one that holds, else one that is open, else none."""
    return True if True in several else None if None in several else False
