"""Prove each entry by its own examples: that it says what it means, and no more.

A schema cannot see that a condition can never hold, or that a key does nothing; databases of rules rotted that way.
So every key, and every bound of a range, must change the verdict on some example, or on a neighbour of one, when it is
left out, and every remedy must clear the examples it is for without walking into another entry.
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import date
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck.environment import Environment
from compatcheck.environment.vocabulary import keys, kind_of
from compatcheck.files import limits
from compatcheck.matrix._containment import is_inside
from compatcheck.matrix._neighbours import Neighbour, neighbours
from compatcheck.matrix._quoted_messages import quoted_messages
from compatcheck.matrix._regex import without_name
from compatcheck.matrix._traits import Table, trait_finder
from compatcheck.matrix.entry import Case, Entry, RemedyEntry, WithdrawnEntry
from compatcheck.matrix.matching.match import Verdict, match_table
from compatcheck.packages.frameworks import foundations, framework_of, frameworks
from compatcheck.packages.names import edge
from compatcheck.packages.versions import is_range, parse_range
from compatcheck.results.logs import ERROR_MARKS

REVIEW_DAYS = 180
_EXPECTATIONS = {True: "affected", False: "unaffected", None: "undetermined"}
_RUN_FACTS = ("training.", "model.")
_QUIET_IMPACTS = ("silent-wrong", "divergence", "hang", "oom")
_NOT_WORDS = re.compile(r"(?:^|\s)#\s.*|\"[^\"]*\"|'[^']*'|\([^()]*\)")
_SENTENCE = re.compile(
    r"(?<![\w./'-])(?:the|an?|of|in|with|without|or|before|after|into"
    r"|its|which|where|that|from|then|than|instead)(?=[ ,;])"
)
_SUPPORTED_PARTS = ("affected", "impact", "mechanism", "misleading", "probe", "remedies", "summary", "symptoms")


_EXCEPTION = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*[A-Za-z]\w*(?:Error|Exception|Warning): ")
_WORDS = re.compile(r"\S*[A-Za-z]{2}\S*")
_FEWEST_WORDS = 3
_REPOSITORY = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")
_MET_BY_USERS = ("maintainer", "report", "upstream-fix")
_SEEN_BY_USERS = {"affected", "impact", "summary", "symptoms"}


Facts = Mapping[str, Any]


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
    entries: Mapping[Path, Entry],
    table: Table,
    probes: Sequence[str],
    today: date,
    only: Sequence[str] = (),
    withdrawn: Mapping[Path, WithdrawnEntry] = {},
) -> list[Fault]:
    """Every fault of the entries ``only``, or of all, each beside the whole matrix. ``probes`` are those there are."""
    active = [_other(entry) for entry in entries.values()]
    patterns = _patterns(other.entry for other in active)
    faults: list[Fault] = []
    for path, entry in entries.items():
        if only and entry.id not in only:
            continue
        around = list(neighbours(entry, table))
        rules: tuple[Iterable[str], ...] = (
            _misplaced(path, entry),
            _unfinished(path, entry),
            _unsupported(entry),
            _unknown_frameworks(entry),
            _unreached_evidence(entry),
            _records_that_bear_nothing(path, entry),
            _unknown_probe(entry, probes),
            _unproved(entry, table),
            _unknown_symptoms(entry, table),
            _false_patterns(entry),
            _patterns_by_name(entry),
            _messages_of_others(entry, patterns),
            _false_examples(entry, around, table),
            _false_neighbours(entry, around, table),
            _idle_conditions(entry, around, table),
            _bad_remedies(entry, active, table),
            _words_in_code(entry),
            _bad_remedies_beside(entry, around, table),
            _loose_pins(entry, table),
            _skipped_fixes(entry, active, table),
            _doubles(entry, active),
        )
        faults += [Fault(entry.id, text) for rule in rules for text in rule]
        faults += [Fault(entry.id, text, stale=True) for text in _stale(entry, today)]
    ids = {entry.id for entry in entries.values()}
    for path, gone in withdrawn.items():
        if not only or gone.id in only:
            faults += [Fault(gone.id, text) for text in _withdrawn(path, gone, ids)]
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
        yield (
            f"the file is in {path.parent.name}/, which is not one of the packages of the entry: "
            f"{', '.join(entry.distributions)}"
        )


def _withdrawn(path: Path, entry: WithdrawnEntry, ids: Set[str]) -> Iterator[str]:
    if path.stem != entry.id:
        yield f"the file is named {path.name}, not {entry.id}.toml"
    yield from (
        f"the successor {each} is not an active entry" for each in entry.withdrawn.successors if each not in ids
    )


def _unfinished(path: Path, entry: Entry) -> Iterator[str]:
    """What a draft leaves to be filled in, and what it asks in comments."""
    texts = {"title": [entry.title], "summary": [entry.summary], "mechanism": [entry.mechanism]}
    texts |= {f"remedies.{n}": [each.why, each.action or ""] for n, each in enumerate(entry.remedies, 1)}
    yield from (f"{part} is still to be written" for part, parts in texts.items() if any("TODO" in t for t in parts))
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    notes = (line.strip() for line in lines if line.lstrip().startswith("# TODO"))
    yield from (f"resolve and remove the comment {note!r}" for note in notes)


def _words_in_code(entry: Entry) -> Iterator[str]:
    """A copy button copies ``code``: what reads as a sentence belongs into ``action``."""
    for number, remedy in enumerate(entry.remedies, 1):
        if remedy.code and not _is_python(remedy.code) and _SENTENCE.search(_NOT_WORDS.sub("", remedy.code)):
            yield f"remedies.{number}: {remedy.code!r} has words around the code; write this remedy as `action`"


def _is_python(code: str) -> bool:
    elided = re.sub(r", \.\.\.\)", ")", code)
    try:
        body = ast.parse(elided).body
    except SyntaxError:
        return False
    return not any(isinstance(each, ast.Assign) and isinstance(each.value, (ast.Compare, ast.BoolOp)) for each in body)


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
        yield f"{evidence.url} reports the fault with {framework}, but no table of conditions covers its users"


def _unaffected(entry: Entry) -> list[Case]:
    return [case for case in entry.cases if case.expect == "unaffected"]


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
            yield f"record {evidence.url} says {verdict!r}, which is not evidence"


def _unknown_probe(entry: Entry, probes: Sequence[str]) -> Iterator[str]:
    if entry.probe and entry.probe.name not in probes:
        yield f"there is no probe {entry.probe.name!r}"
    if entry.reproduce and not entry.probe:
        yield "the entry has [reproduce] but names no probe"


def _unproved(entry: Entry, table: Table) -> Iterator[str]:
    """A fault that a log does not show names the probe that does, or why none can."""
    if entry.unprobed and entry.probe:
        yield "the entry names a probe, but `unprobed` says that no probe can show the fault"
    elif entry.unprobed and entry.unprobed not in table("unprobed")["reasons"]:
        yield f"tables/unprobed.toml has no reason {entry.unprobed!r}"
    elif entry.impact in _QUIET_IMPACTS and not (entry.unprobed or entry.probe):
        yield f"the impact is {entry.impact}: name a probe, or say in `unprobed` why no probe can show the fault"


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
        if len(pattern.example) > limits.MATCHED_CHARACTERS or not regex.search(pattern.example):
            yield f"error pattern {number} does not match its example"
        if "\n" in pattern.example:
            yield f"error pattern {number}: the example has several lines, but a log is read line by line"
        if not pattern.example.startswith("  ") and not any(mark in pattern.example for mark in ERROR_MARKS):
            yield (
                f"error pattern {number}: the example contains no error mark, so the pattern is never compared with it"
            )
        for line in pattern.not_examples:
            if regex.search(line):
                yield f"error pattern {number} matches {line!r}, which it must not match"


def _patterns_by_name(entry: Entry) -> Iterator[str]:
    """A message is quoted without the exception's name: a phrase must match alone, or stand in a line not to match."""
    for number, pattern in enumerate(entry.error_patterns, 1):
        name = _EXCEPTION.match(pattern.example)
        message = pattern.example[name.end() :] if name else ""
        if len(_WORDS.findall(message)) < _FEWEST_WORDS or any(message in line for line in pattern.not_examples):
            continue
        if not re.search(without_name(pattern.regex, pattern.not_examples), message, re.IGNORECASE | re.ASCII):
            yield f"error pattern {number} needs the exception's name: match {message!r} or name it in not_examples"


def _patterns(entries: Iterable[Entry]) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (entry.id, re.compile(without_name(pattern.regex, pattern.not_examples), re.IGNORECASE | re.ASCII))
        for entry in entries
        for pattern in entry.error_patterns
    ]


def _messages_of_others(entry: Entry, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> Iterator[str]:
    """A message that the entry quotes must not lead to others alone, unless it says that it means another line."""
    lines = [line for pattern in entry.error_patterns for line in (pattern.example, *pattern.not_examples)]
    for message in quoted_messages(entry):
        owners = sorted({name for name, regex in patterns if regex.search(message)})
        parts = [part.strip().lower() for part in message.split("...")]
        shown = any(all(part in line.lower() for part in parts) for line in lines)
        if owners and entry.id not in owners and not shown:
            yield f"the entry quotes {message!r}, which only the pattern of {owners[0]} matches"


def _false_examples(entry: Entry, around: Sequence[Neighbour], table: Table) -> Iterator[str]:
    for number, case in enumerate(entry.cases, 1):
        seen = _verdict(entry.affected, case.environment, table)
        if seen != case.expect:
            yield f"example {number} is {seen}, not {case.expect}: {case.environment}"
    lacking = {"affected", "unaffected", "undetermined"} - {case.expect for case in entry.cases}
    if lacking:
        lacking -= {_verdict(entry.affected, each.environment, table) for each in around}
    if lacking:
        yield f"no example is {' or '.join(sorted(lacking))}"
    for number, conditions in enumerate(entry.affected, 1):
        if not any(_verdict([conditions], case.environment, table) == "affected" for case in entry.cases):
            yield f"no example is affected by table {number}"


def _false_neighbours(entry: Entry, around: Sequence[Neighbour], table: Table) -> Iterator[str]:
    """Each bound must divide where it says, and a missing fact leave its table open."""
    for each in around:
        seen = _holds(entry.affected[each.number], each.environment, table)
        if seen is not each.holds:
            expected = _EXPECTATIONS[each.holds]
            yield f"table {each.number + 1}: an example with {each.what} is {_EXPECTATIONS[seen]}, not {expected}"


def _idle_conditions(entry: Entry, around: Sequence[Neighbour], table: Table) -> Iterator[str]:
    """Each key and each bound must change the verdict on an example, or on a neighbour that differs in its fact."""
    judged = [[_holds(each, case.environment, table) for each in entry.affected] for case in entry.cases]
    for number, conditions in enumerate(entry.affected):
        for path, what, fewer in _without_one(conditions):
            tried = zip((case.environment for case in entry.cases), judged)
            beside = (each.environment for each in around if (each.number, each.path) == (number, path))
            judged_beside = ((facts, [_holds(other, facts, table) for other in entry.affected]) for facts in beside)
            if not any(
                _best(holds) != _best([*holds[:number], _holds(fewer, facts, table), *holds[number + 1 :]])
                for facts, holds in chain(tried, judged_beside)
            ):
                yield f"table {number + 1}: no example changes without {what}"


def _without_one(conditions: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, object]]]:
    """The table less one key, one bound of a range or one of several traits, each with its path and its name.

    The presence of a package beside a trait stays: it says when the trait need not be computed at all.
    """
    for path, condition in conditions.items():
        if condition == "present" and "traits" in conditions:
            continue
        yield path, path, {key: value for key, value in conditions.items() if key != path}
        bounds = condition.split(",") if isinstance(condition, str) and is_range(condition) else []
        for bound in bounds if len(bounds) > 1 else ():
            rest = ",".join(other for other in bounds if other != bound)
            yield path, f"{path} {bound}", {**conditions, path: rest}
    for trait in conditions.get("traits", ()) if len(conditions.get("traits", ())) > 1 else ():
        yield (
            "traits",
            f"the trait {trait}",
            {**conditions, "traits": [other for other in conditions["traits"] if other != trait]},
        )


def _bad_remedies(entry: Entry, active: Sequence[_Other], table: Table) -> Iterator[str]:
    harmed = _harmed(entry)
    for number, remedy in enumerate(entry.remedies, 1):
        if not (remedy.pins or remedy.config or remedy.environ):
            continue
        touched = [other for other in active if _speaks_of(other.paths, remedy)]
        for facts in harmed:
            try:
                cured = apply_remedy(remedy, facts)
            except ValueError as error:
                yield f"remedy {number}: {error}"
                break
            yield from (f"remedy {number}: {text}" for text in _still_bad(entry, facts, cured, touched, table))


def _harmed(entry: Entry) -> list[Facts]:
    return [case.environment for case in entry.cases if case.expect == "affected"]


def _bad_remedies_beside(entry: Entry, around: Sequence[Neighbour], table: Table) -> Iterator[str]:
    """A remedy must also clear what is affected at a bound."""
    for number, remedy in enumerate(entry.remedies, 1):
        if not (remedy.pins or remedy.config or remedy.environ) or not all(map(edge, remedy.pins.values())):
            continue
        for each in around:
            cured = apply_remedy(remedy, each.environment) if each.holds else {}
            if each.holds and _verdict(entry.affected, cured, table) != "unaffected":
                yield f"remedy {number}: does not clear {each.what}"


def _loose_pins(entry: Entry, table: Table) -> Iterator[str]:
    """No release that a pin admits may have the fault, as far as the entry's own bounds tell."""
    for number, remedy in enumerate(entry.remedies, 1):
        for name, specifier in remedy.pins.items():
            if not any(is_range(str(conditions.get(f"distributions.{name}", ""))) for conditions in entry.affected):
                continue
            admitted = (
                (version, remedy.model_copy(update={"pins": {**remedy.pins, name: f"=={version}"}}))
                for version in _neighbours(name, specifier, entry, table)
            )
            bad = next((version for version, pinned in admitted if _keeps_fault(entry, pinned, table)), None)
            if bad:
                yield f"remedy {number} allows {name} {bad}, which is affected according to the entry"


def _keeps_fault(entry: Entry, remedy: RemedyEntry, table: Table) -> bool:
    return any(_verdict(entry.affected, apply_remedy(remedy, facts), table) == "affected" for facts in _harmed(entry))


def _neighbours(name: str, specifier: str, entry: Entry, table: Table) -> list[Version]:
    """Of the releases that the entry and the specifier name, and those before them, the ones that it allows."""
    allowed = SpecifierSet(specifier, prereleases=True)
    ranges = (conditions.get(f"distributions.{name}") for conditions in entry.affected)
    bounds = {bound.version for text in ranges if text and is_range(text) for bound in parse_range(text)}
    bounds |= {_version(each.version) for each in allowed if "*" not in each.version}
    releases = _releases(name, table)
    before = {releases[at - 1] for bound in bounds if (at := bisect_left(releases, bound))}
    return sorted(version for version in bounds | before if version in allowed)


def _releases(name: str, table: Table) -> list[Version]:
    return [_version(text) for text in table("release-history")["releases"].get(name, ())]


_version = cache(Version)


def _skipped_fixes(entry: Entry, active: Sequence[_Other], table: Table) -> Iterator[str]:
    """A pin beyond the minor release that first has no fault names that release, or the entry against it."""
    for number, remedy in enumerate(entry.remedies, 1):
        if len(remedy.pins) != 1 or remedy.config or remedy.environ:
            continue
        ((name, specifier),) = remedy.pins.items()
        lowest = [_version(each.version) for each in SpecifierSet(specifier) if each.operator == ">="]
        fixed = _first_fixed(name, lowest[0], entry, table) if lowest else None
        if fixed is None or str(fixed) in remedy.why or "CC-" in remedy.why:
            continue
        nearer = remedy.model_copy(update={"pins": {name: f">={fixed}"}})
        touched = [other for other in active if _speaks_of(other.paths, nearer)]
        if not any(
            text
            for each in _harmed(entry)
            for text in _still_bad(entry, each, apply_remedy(nearer, each), touched, table)
        ):
            yield (
                f"remedy {number} skips {name} {fixed}, the first release without the fault: name this "
                "release, or say why not"
            )


def _first_fixed(name: str, lowest: Version, entry: Entry, table: Table) -> Version | None:
    """The release of an older minor version than the pin at which the last range of the entry ends, if it does."""
    ranges = [conditions.get(f"distributions.{name}") for conditions in entry.affected]
    ends = [
        bound.version
        for text in ranges
        if text and is_range(text)
        for bound in parse_range(text)
        if bound.operator == "<"
    ]
    fixed = max(ends, default=None)
    is_older = fixed is not None and fixed.release[:2] < lowest.release[:2]
    return fixed if is_older and fixed in _releases(name, table) else None


def _doubles(entry: Entry, active: Sequence[_Other]) -> Iterator[str]:
    """An entry that holds only where another of the same packages does tells the same twice, or says what else."""
    wider = {
        other.entry.id: other.entry.title
        for other in active
        if other.entry.id != entry.id
        and set(other.entry.distributions) == set(entry.distributions)
        and all(any(is_inside(table, each) for each in other.entry.affected) for table in entry.affected)
    }
    for name in wider.keys() - entry.overlaps.keys():
        yield (
            f"the entry applies only where {name} ({wider[name]}) applies: merge them, or say in "
            "`overlaps` what this entry adds"
        )
    yield from (
        f"the conditions do not lie within those of {name}: remove it from `overlaps`"
        for name in entry.overlaps
        if name not in wider
    )


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


def _still_bad(entry: Entry, before: Facts, after: Facts, active: Sequence[_Other], table: Table) -> Iterator[str]:
    if _verdict(entry.affected, after, table) != "unaffected":
        yield f"does not clear the example {before}"
    environment, traits, known = Environment(after), trait_finder(table), dict[str, Verdict]()
    stated = _stated_facts(after)
    for other, _, needed in active:
        may_hold = (each for each, facts in zip(other.affected, needed) if facts <= stated)
        becomes = any(match_table(each, environment, traits, known).holds for each in may_hold)
        if becomes and other.id != entry.id and _verdict(other.affected, before, table) != "affected":
            yield f"leads to {other.id} ({other.title})"


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


def apply_remedy(remedy: RemedyEntry, facts: Facts) -> Facts:
    """The environment after the remedy. Raises ValueError where a pin names no version that can be tried."""
    pinned = {f"distributions.{name}": _edge(specifier) for name, specifier in remedy.pins.items()}
    variables = {f"environ.{name}": value for name, value in remedy.environ.items()}
    environment = Environment(facts)
    for path, value in {**pinned, **variables, **remedy.config}.items():
        environment = environment.with_fact(path, value)
    return environment.facts


def _edge(specifier: str) -> str:
    version = edge(specifier)
    if version is None:
        raise ValueError(f"{specifier!r} names no version that it allows itself; write '<=X' instead of '<Y'")
    return version


def _stale(entry: Entry, today: date) -> Iterator[str]:
    age = (today - entry.reviewed).days
    if age > REVIEW_DAYS and any(_is_open(conditions) for conditions in entry.affected):
        yield f"a range is open to newer releases and was last reviewed {age} days ago"


def _is_open(conditions: Mapping[str, Any]) -> bool:
    ranges = [value for path, value in conditions.items() if path.startswith("distributions.")]
    return bool(ranges) and not any("<" in value or "==" in value for value in ranges)


def _verdict(tables: Iterable[Mapping[str, Any]], facts: Facts, table: Table) -> str:
    return _EXPECTATIONS[_best([_holds(conditions, facts, table) for conditions in tables])]


def _holds(conditions: Mapping[str, object], facts: Facts, table: Table) -> bool | None:
    return match_table(conditions, Environment(facts), trait_finder(table)).holds


def _best(several: Sequence[bool | None]) -> bool | None:
    """Of several tables: one that holds, else one that is open, else none."""
    return True if True in several else None if None in several else False
