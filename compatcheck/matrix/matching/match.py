"""Does a condition hold in an environment: yes, no, or unknown for want of named facts.

The logic is Kleene's: within a table every key must hold, one that fails decides against the table, and an unknown
one leaves it open; of several tables one that holds is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.environment.paths import distribution_of, variable_of
from compatcheck.environment.vocabulary import kind_of
from compatcheck.inference.inferred import NOTHING, Bounds, Limit
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix.matching.relevance import is_left_off, is_narrowed, rare_choices, relevance
from compatcheck.matrix.matching.unset_values import acts_like_unset
from compatcheck.packages.frameworks import foundations, framework_of
from compatcheck.packages.versions import (
    contains,
    is_before_release,
    is_range,
    is_vendor_build,
    names_builds,
    number_in_range,
    parse_range,
    parse_version,
    release_of,
)
from compatcheck.results.findings import Status

Conditions = Mapping[str, Any]

_SEVERAL = (2, 3, 4, 8, 16, 64, 1024)
"""Numbers of ranks, one for each that a condition may set apart."""


class Occurrence(NamedTuple):
    """One place where a trait holds: what is seen there, who is at fault, the pins that mend it, and others that do.

    ``why`` says of the pins, or of the settings of ``config``, why they mend it; ``location`` is the line that shows
    it, where one does. ``code`` is what to write there instead. ``note`` is what is known of this very place beyond
    what the trait says of all, with its ``source``; ``remedies`` are ways out beside other releases, as an entry
    states them.
    """

    summary: str
    packages: tuple[str, ...]
    pins: Mapping[str, str] = {}
    instead: Mapping[str, str] = {}
    why: str = marked("the packages' own metadata says that these versions belong together")
    location: Location | None = None
    config: Mapping[str, Any] = {}
    code: str = ""
    note: str = ""
    source: str = ""
    remedies: tuple[Mapping[str, Any], ...] = ()


class TraitVerdict(NamedTuple):
    """Whether a trait holds (None: unknown), where, and which facts are missing to tell.

    ``presumed`` marks one that holds because nothing speaks against it, which singles nobody out, and ``suspected`` an
    unknown one that something singular speaks for. One that is open and yet names an occurrence is worth telling: what
    was seen there lacks a single fact to be certain. ``facts`` are those whose place is that of the trait.
    """

    holds: bool | None
    occurrences: tuple[Occurrence, ...] = ()
    missing: tuple[str, ...] = ()
    presumed: bool = False
    suspected: bool = False
    facts: tuple[str, ...] = ()


TraitFinder = Callable[[str, Environment], TraitVerdict]


class Verdict(NamedTuple):
    """``holds`` is None where facts are missing; ``narrowed`` tells that something singular speaks for it.

    ``paths`` names the facts that the judged table speaks of; ``partly`` says, by fact, which part of a range that is
    asked for is at fault. ``expected`` tells that a fresh install would take a version at fault, which singles nobody
    out but leaves the package no less sure than a version would.
    """

    holds: bool | None
    missing: tuple[str, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()
    narrowed: bool = False
    paths: tuple[str, ...] = ()
    partly: Mapping[str, str] = {}
    expected: bool = False


class ManyEnvironments(Environment):
    """An environment that stands for many, and knows the verdict on a condition, or on all that one GPU must meet."""

    verdict_on: Callable[[Conditions], Verdict] | None = None


def is_reported(verdict: Verdict) -> bool:
    """Whether an entry with this verdict is reported at all: one that lacks facts only where it is narrowed."""
    return verdict.holds is True or (verdict.holds is None and verdict.narrowed)


def status_of(verdict: Verdict, confidence: str) -> Status:
    """The status to report; an unconfirmed entry is at most possible."""
    return "affected" if verdict.holds and confidence != "reported" else "possible"


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The best of several tables: one that holds, else one that is open, else none."""
    best = Verdict(False)
    for verdict in verdicts:
        if verdict.holds:
            return verdict
        if verdict.holds is None and (best.holds is False or _closer(verdict, best)):
            best = verdict
    return best


def _closer(one: Verdict, other: Verdict) -> bool:
    return _distance(one) < _distance(other)


def _distance(verdict: Verdict) -> tuple[bool, int]:
    return not verdict.narrowed, len(verdict.missing)


def match_table(
    conditions: Conditions,
    environment: Environment,
    traits: TraitFinder,
    known: dict[str, Verdict] | None = None,
    inferred: Bounds = NOTHING,
) -> Verdict:
    """Judge one ``[[affected]]`` table; its ``gpu.*`` keys must hold on one and the same GPU, ``every_gpu.*`` on each.

    ``inferred`` bounds what the environment leaves unknown. ``known`` carries the verdicts on single conditions from
    table to table of one environment: entries share many.
    """
    parts: dict[str, Verdict] = {}
    for path, part in match_parts(conditions, environment, traits, {} if known is None else known, inferred):
        if part.holds is False:
            return Verdict(False)
        parts[path] = part
    return join_parts(conditions, parts, environment)


class Weighed(NamedTuple):
    """A table with the verdict on each of its conditions; the demands on one GPU are one, called ``gpu``."""

    verdict: Verdict
    parts: Mapping[str, Verdict]

    def failed(self) -> tuple[str, ...]:
        return tuple(path for path, part in self.parts.items() if part.holds is False)

    def held(self) -> tuple[str, ...]:
        return tuple(path for path, part in self.parts.items() if part.holds)


def weigh_table(
    conditions: Conditions,
    environment: Environment,
    traits: TraitFinder,
    known: dict[str, Verdict],
    inferred: Bounds = NOTHING,
) -> Weighed:
    """Judge a table as `match_table` does, and every condition of it, also where one fails."""
    parts = dict(match_parts(conditions, environment, traits, known, inferred))
    if any(part.holds is False for part in parts.values()):
        return Weighed(Verdict(False), parts)
    return Weighed(join_parts(conditions, parts, environment), parts)


def match_value(path: str, condition: object, value: object) -> bool | None:
    """Whether a value meets the condition on its path, by itself; None where that cannot be told."""
    return _compare(path, condition, value).holds


def match_parts(
    conditions: Conditions, environment: Environment, traits: TraitFinder, known: dict[str, Verdict], inferred: Bounds
) -> Iterator[tuple[str, Verdict]]:
    """The verdict on each condition by its path; the demands on one GPU are one, called ``gpu``."""
    gpu: Conditions = {}
    verdict_on = environment.verdict_on if isinstance(environment, ManyEnvironments) else None
    for path, condition in conditions.items():
        of_gpu = path.startswith("gpu.")
        if of_gpu and not gpu:
            gpu = {each: wanted for each, wanted in conditions.items() if each.startswith("gpu.")}
        key = f"{path} {gpu if of_gpu else condition!r}"
        part = known.get(key)
        if part is None:
            if verdict_on:
                part = verdict_on(gpu if of_gpu else {path: condition})
            elif of_gpu:
                part = _match_gpus(gpu, environment)
            else:
                part = _match_key(path, condition, environment, inferred, traits)
            known[key] = part
        if part.holds is None and is_left_off(path, condition):
            part = part._replace(expected=True)
        yield "gpu" if of_gpu else path, part


def join_parts(conditions: Conditions, parts: Mapping[str, Verdict], environment: Environment) -> Verdict:
    """The verdict on a table none of whose conditions fails."""
    verdict = _all_of(parts.values())
    rare = rare_choices(conditions)
    narrowed = verdict.holds is None and is_narrowed(parts, rare, environment)
    of_code = (f"{whose}.traits.{name}" for name in conditions.get("traits", ()) for whose in ("model", "trainer"))
    seen = parts["traits"].paths if "traits" in parts else ()
    stated = ("training.framework" if path == "training.runs_on" else path for path in conditions)
    return verdict._replace(narrowed=narrowed, paths=(*seen, *of_code, *stated))


def _all_of(parts: Iterable[Verdict]) -> Verdict:
    holds: bool | None = True
    missing: tuple[str, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()
    narrowed = False
    partly: dict[str, str] = {}
    for part in parts:
        if part.holds is False:
            return Verdict(False)
        if part.holds is None:
            holds = None
        missing += part.missing
        occurrences += part.occurrences
        narrowed = narrowed or part.narrowed
        partly.update(part.partly)
    return Verdict(holds, missing, occurrences, narrowed, partly=partly)


def _match_gpus(conditions: Conditions, environment: Environment) -> Verdict:
    gpus = environment.get("gpus")
    if isinstance(gpus, Unknown):
        return Verdict(None, tuple(conditions))
    return any_of(
        _all_of(
            _compare(path, condition, gpu.get(path[4:], Unknown()) if isinstance(gpu, Mapping) else Unknown())
            for path, condition in conditions.items()
        )
        for gpu in gpus or ()
    )


def _match_every_gpu(path: str, condition: object, environment: Environment) -> Verdict:
    """Whether a condition holds on each GPU; what is missing is told by the name that a GPU's own fact has."""
    gpus, fact = environment.get("gpus"), path.partition(".")[2]
    if isinstance(gpus, Unknown):
        return Verdict(None, (f"gpu.{fact}",))
    if not gpus:
        return Verdict(False)
    verdict = _all_of(_compare(f"gpu.{fact}", condition, gpu.get(fact, Unknown())) for gpu in gpus)
    return verdict._replace(missing=verdict.missing[:1])


def _match_key(path: str, condition: Any, environment: Environment, inferred: Bounds, traits: TraitFinder) -> Verdict:
    if path.startswith("every_gpu."):
        return _match_every_gpu(path, condition, environment)
    if path == "traits":
        found = [traits(name, environment) for name in condition]
        return any_of(Verdict(t.holds, t.missing, t.occurrences, _is_singular(t), t.facts) for t in found)
    if path == "training.runs_on":
        return _match_runs_on(condition, environment, inferred, traits)
    value = environment.get(path)
    if condition in ("present", "absent") and isinstance(value, str):
        variable = variable_of(path)
        value = None if variable and acts_like_unset(variable, value, environment) else value
    if not isinstance(value, Unknown):
        return _match_development(path, condition, value, inferred) or _compare(path, condition, value)
    bounded = _BOUNDED.get(path) or _BOUNDED.get(path.partition(".")[0])
    return bounded(path, condition, environment, inferred) if bounded else Verdict(None, (path,))


def _match_runtime(path: str, condition: object, environment: Environment, inferred: Bounds) -> Verdict:
    """A torch that is built with some CUDA has a runtime, of whatever version."""
    known = inferred.has_cuda and condition in ("present", "absent")
    return Verdict(condition == "present") if known else Verdict(None, (path,))


def _match_python(path: str, condition: object, environment: Environment, inferred: Bounds) -> Verdict:
    return Verdict(False) if _is_excluded(condition, inferred.python_range) else Verdict(None, (path,))


def _match_variable(path: str, condition: object, environment: Environment, inferred: Bounds) -> Verdict:
    """A variable that a report does not mention is not set, unless others than the user set it."""
    unmentioned = "report" in environment.facts and environment.get(path) == Unknown()
    is_unset = condition == "absent" and unmentioned and variable_of(path) not in relevance().set_by_others
    return Verdict(True) if is_unset else Verdict(None, (path,))


def _match_version(path: str, condition: object, environment: Environment, inferred: Bounds) -> Verdict:
    """A distribution whose version is unknown has one in the range asked for, and one that was out by the day."""
    name = distribution_of(path) or ""
    asked, limit = _required_range(environment, inferred, name), inferred.limits.get(name)
    if asked is not None:
        return _match_range(path, condition, asked, limit)
    if limit is not None and limit.coming is not None and _is_excluded(condition, limit.coming):
        return Verdict(False)
    return Verdict(None, (path,))


def _match_runs_on(condition: Any, environment: Environment, inferred: Bounds, traits: TraitFinder) -> Verdict:
    """Whether the run goes through the training loop of one of these frameworks: its own, or one below it."""
    stated = environment.get("training.framework")
    if isinstance(stated, Unknown):
        return Verdict(None, ("training.framework",))
    wanted = condition if isinstance(condition, list) else [condition]
    framework = framework_of(stated)
    if framework is None or framework.name in wanted:
        return Verdict(framework is not None, narrowed=framework is not None)
    below = foundations(framework.name)
    verdict = any_of(
        _all_of(
            _match_key(f"distributions.{package}", releases, environment, inferred, traits)
            for package, releases in below[name].items()
        )
        for name in wanted
        if name in below
    )
    return verdict._replace(narrowed=verdict.holds is True)


def _match_ranks(path: str, condition: object, environment: Environment, inferred: Bounds) -> Verdict:
    """Where it is known that there are several ranks, and not how many."""
    if environment.get("training.several_ranks") is not True:
        return Verdict(None, (path,))
    held = {_holds(path, condition, number) for number in _SEVERAL}
    return Verdict(held.pop(), narrowed=True) if len(held) == 1 else Verdict(None, (path,))


_BOUNDED: Mapping[str, Callable[[str, object, Environment, Bounds], Verdict]] = {
    "cuda.runtime": _match_runtime,
    "distributions": _match_version,
    "environ": _match_variable,
    "python": _match_python,
    "training.world_size": _match_ranks,
}
"""How a fact is matched that is unknown and yet bounded by others, by its path or section."""


def _match_development(path: str, condition: object, value: object, inferred: Bounds) -> Verdict | None:
    """A development version whose fix came out in a patch release of the line before; None for any other.

    It does not have the fix where that release was not out by the day of the report; without a day nobody knows.
    """
    name = distribution_of(path)
    version = parse_version(value) if name and isinstance(value, str) else None
    if version is None or not version.is_devrelease or not isinstance(condition, str) or not is_range(condition):
        return None
    bounds = parse_range(condition)
    lower = tuple(bound for bound in bounds if bound.operator in (">", ">="))
    fixes = [bound for bound in bounds if bound.operator == "<" and _is_patch_of_line_before(bound.version, version)]
    if not fixes or names_builds(bounds) or not contains(lower, version):
        return None
    limit = inferred.limits.get(name or "")
    if limit is None:
        return Verdict(None, partly=_undecided_build(path, condition, value), expected=True)
    newest = limit.newest
    return Verdict(True, narrowed=True) if newest and Version(newest) < fixes[0].version else None


def _is_patch_of_line_before(patch: Version, development: Version) -> bool:
    """Whether 0.32.2 is a patch release of the line that was out while 0.33.0.dev0 was developed."""
    next_minor = (patch.major, patch.minor + 1) == (development.major, development.minor)
    next_major = (patch.major + 1, 0) == (development.major, development.minor)
    return patch.micro > 0 and development.micro == 0 and (next_minor or next_major)


def _undecided_build(path: str, condition: object, value: object) -> dict[str, str]:
    words = _("is {version}, a build that may be older or newer than {range}")
    return {path: words.format(version=value, range=condition)}


def _required_range(environment: Environment, inferred: Bounds, name: str) -> str | None:
    """The range in which a distribution is to be there, as somebody states it or other facts imply it."""
    stated: str | None = environment.section("distribution_ranges").get(name)
    return inferred.required.get(name) if stated is None else stated


def _is_singular(trait: TraitVerdict) -> bool:
    if trait.holds is None:
        return bool(trait.occurrences) or trait.suspected
    return trait.holds and not trait.presumed


def _is_excluded(condition: object, implied: str | None) -> bool:
    """Whether no version in the range that other facts imply meets the condition."""
    from compatcheck.matrix.matching import requested_ranges

    if implied is None or not isinstance(condition, str) or not is_range(condition):
        return False
    return requested_ranges.compare(implied, condition).holds is False


def _match_range(path: str, condition: Any, asked: str, limit: Limit | None) -> Verdict:
    """A distribution of which only the range asked for is known: it will be there, in one of these versions.

    Where a limit is known, in one of those that were out by then.
    """
    from compatcheck.matrix.matching import requested_ranges

    if condition in ("present", "absent"):
        return Verdict(condition == "present")
    if not isinstance(condition, str) or not is_range(condition):
        return Verdict(None, (path,))
    if limit is not None and limit.newest is not None:
        return _match_dated(path, condition, asked, limit)
    overlap = requested_ranges.compare(asked, condition)
    if overlap.holds is not None:
        return Verdict(overlap.holds, narrowed=overlap.holds and not _is_open(condition))
    words = _("may be {asked}; only {range} is affected").format(asked=asked or _("any version"), range=condition)
    partly = {path: words} if overlap.partial else {}
    narrowed = overlap.telling and not _is_open(condition)
    return Verdict(None, (path,), narrowed=narrowed, partly=partly, expected=overlap.newest)


def _match_dated(path: str, condition: str, asked: str, limit: Limit) -> Verdict:
    from compatcheck.matrix.matching import requested_ranges

    overlap = requested_ranges.compare(",".join(filter(None, (asked, f"<={limit.newest}"))), condition)
    if overlap.holds is False:
        return Verdict(False)
    stated = _("is required as {asked}").format(asked=asked) if asked else _("has no version")
    words = _("{stated}; {newest} was the newest on {day}, and {range} is affected").format(
        stated=stated, newest=limit.newest, day=limit.day, range=condition
    )
    expected = overlap.telling or overlap.holds is True or (overlap.partial and _is_run(condition, limit))
    return Verdict(
        overlap.holds,
        () if overlap.holds else (path,),
        narrowed=expected and not _is_open(condition),
        partly={path: words} if overlap.holds or overlap.partial else {},
        expected=expected,
    )


def _is_run(condition: str, limit: Limit) -> bool:
    """Whether half of the releases are at fault, or more, that people then ran."""
    bounds = parse_range(condition)
    return 2 * sum(contains(bounds, Version(each)) for each in limit.recent) >= len(limit.recent)


def _compare(path: str, condition: Any, value: Any) -> Verdict:
    if isinstance(value, Unknown):
        return Verdict(None, (path,))
    if condition in ("present", "absent"):
        return Verdict((value is not None) == (condition == "present"))
    if value is None:
        return Verdict(False)
    holds = _holds(path, condition, value)
    if holds is None and isinstance(value, str) and is_before_release(value):
        partly = _undecided_build(path, condition, value)
        return Verdict(None, narrowed=not _is_open(condition), partly=partly, expected=True)
    seen = holds is True or (isinstance(value, str) and is_vendor_build(value))
    return Verdict(holds, (path,) if holds is None else (), narrowed=seen and not _is_open(condition))


def _is_open(condition: object) -> bool:
    return isinstance(condition, str) and condition.lstrip()[:1] == ">" and "<" not in condition


def _holds(path: str, condition: object, value: object) -> bool | None:
    kind = kind_of(path)
    if kind is None:
        return None
    if isinstance(condition, list):
        return _is_member(condition, value)
    if isinstance(condition, str) and is_range(condition):
        return _in_range(condition, value, numeric=kind == "number")
    if kind == "labels":
        return _is_member([condition], value)
    return bool(condition == value)


def _is_member(allowed: list[object], value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return not set(allowed).isdisjoint(value)
    return value in allowed


def _in_range(text: str, value: Any, *, numeric: bool) -> bool | None:
    if numeric:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number_in_range(text, value) if number else None
    version = parse_version(str(value))
    if version is None:
        return None
    bounds = parse_range(text)
    inside = contains(bounds, version)
    if is_before_release(str(value)) and not names_builds(bounds):
        return inside if inside == contains(bounds, release_of(version)) else None
    return None if inside and is_vendor_build(str(value)) else inside
