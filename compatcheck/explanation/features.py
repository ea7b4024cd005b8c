"""What of a case speaks for an entry and against it, in numbers that a linear model weighs.

Each feature is about one kind of evidence: an error line, a symptom, a fact that holds or fails, a contrast, a package
that is named, words in common, and how well known the fault is. Those of a kind that the case lacks are 0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date
from typing import Any, NamedTuple

from compatcheck import matrix
from compatcheck.environment import Environment, Unknown
from compatcheck.environment.paths import distribution_of
from compatcheck.explanation.words import Likeness, Words
from compatcheck.inference.inferred import Judged
from compatcheck.inference.report_date import day_of_report
from compatcheck.matrix.matching.match import TraitFinder, Verdict, Weighed, match_value, weigh_table
from compatcheck.matrix.rows import Row
from compatcheck.packages.names import normalised
from compatcheck.results.cases import Case, Contrast, Sighting
from compatcheck.results.logs import Hit

_CONFIDENCES = ("reported", "corroborated", "upstream-fixed", "reproduced")
_QUIET = frozenset(("silent-wrong", "divergence", "slow"))
_LOUD = frozenset(("crash", "import-fail", "install-fail"))
_NO_PACKAGES = frozenset(("hardware", "network", "container"))
"""What entries name as their package where none is at fault; no report says these words of one."""

_ANY_PACKAGE = ("python",)
"""What an entry names that computes the packages at fault."""

_LEAST_ALIKE, _LITTLE_ALIKE = 0.25, 0.1
"""Likeness to an entry, as a share of the most alike one's, that counts by itself, and beside a package's name."""

_FEW_WORDS = 25.0
"""A score of the most alike entry below which a text has hardly any words."""

_SECTIONS = {
    "training": "setting",
    "gpu": "machine",
    "every_gpu": "machine",
    "cuda": "machine",
    "platform": "machine",
    "torch_build": "machine",
    "model": "model",
    "traits": "trait",
}
_TOKEN = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
_CALLED = {"pytorch": "torch", "huggingface-transformers": "transformers", "llama-factory": "llamafactory"}


class Corpus(NamedTuple):
    """The rows of a matrix, its words, and how rare each symptom is among the rows."""

    rows: tuple[Row, ...]
    words: Words
    symptom_idf: Mapping[str, float]
    kinds: Mapping[str, str]
    silent: frozenset[str]


class Alike(NamedTuple):
    """How alike the texts of a case, and its error lines alone, are to each row."""

    text: Likeness
    errors: Likeness


class Context(NamedTuple):
    """A case, made ready to be compared with many entries."""

    case: Case
    judged: Judged
    variants: tuple[Judged, ...]
    hits: Mapping[str, Sequence[Hit]]
    symptoms: Mapping[str, Sighting]
    kinds: Mapping[str, Set[str]]
    is_quiet: bool
    alike: Alike
    named: Mapping[str, int]
    day: date | None


class Weighing(NamedTuple):
    """An entry in the light of a case: its features, and the table that was judged."""

    row: Row
    features: Mapping[str, float]
    conditions: Mapping[str, Any]
    weighed: Weighed
    hits: Sequence[Hit]
    symptoms: tuple[Sighting, ...]
    contrasts_for: tuple[Contrast, ...]
    contrasts_against: tuple[Contrast, ...]
    verdict: Verdict


def corpus(known: matrix.Matrix) -> Corpus:
    """The rows of a matrix, ready to be compared with cases."""
    rows = matrix.rows(known)
    symptoms = known.table("symptoms")["symptoms"]
    seen = Counter(symptom for row in rows for symptom in row.symptoms)
    return Corpus(
        rows,
        Words(matrix.postings(known), [row.words for row in rows]),
        {name: math.log(len(rows) / number) for name, number in seen.items()},
        {name: each["kind"] for name, each in symptoms.items() if each["kind"] != "error-class"},
        frozenset(name for name, each in symptoms.items() if each.get("silent")),
    )


def context(case: Case, known: matrix.Matrix, corpus: Corpus) -> Context:
    """The case with what follows from its facts, its words and the packages it names."""
    judged = matrix.infer(known, case.environment)
    variants = tuple(
        matrix.infer(known, case.environment.overlay(Environment.from_flat(values))) for values in case.variants
    )
    hits: dict[str, list[Hit]] = {}
    for hit in case.hits:
        hits.setdefault(hit.entry, []).append(hit)
    text = "\n".join(text for _, text in case.texts)
    symptoms: dict[str, Sighting] = {}
    for sighting in case.sightings:
        symptoms.setdefault(sighting.symptom, sighting)
    named = _named(text, judged.view)
    kinds: dict[str, set[str]] = {}
    for name in symptoms:
        if name in corpus.kinds:
            kinds.setdefault(corpus.kinds[name], set()).add(name)
    is_quiet = bool(symptoms) and all(name in corpus.silent for name in symptoms)
    errors = "\n".join(sighting.text for sighting in case.sightings if sighting.origin == "error")
    alike = Alike(*(corpus.words.compare(each) for each in (text, errors)))
    day = day_of_report(case.environment)
    return Context(case, judged, variants, hits, symptoms, kinds, is_quiet, alike, named, day)


def _named(text: str, environment: Environment) -> Mapping[str, int]:
    found = Counter(_packages(text))
    found.update(name for name, version in environment.section("distributions").items() if version)
    return found


def _packages(text: str) -> list[str]:
    tokens = (normalised(token) for token in _TOKEN.findall(text.lower()))
    return [_CALLED.get(token, token) for token in tokens]


def is_pointed_at(number: int, context: Context, corpus: Corpus) -> bool:
    """Whether a line, a symptom, the name of a package or the words of a case point at a row's entry.

    A name alone does where the case has few words; else the words are to be a little alike as well.
    """
    row, text = corpus.rows[number], context.alike.text
    return (
        row.id in context.hits
        or text.of_best(number) >= _LEAST_ALIKE
        or any(name in context.symptoms for name in row.symptoms)
        or (
            (text.best < _FEW_WORDS or text.of_best(number) >= _LITTLE_ALIKE)
            and any(name in context.named for name in row.packages)
        )
    )


def weigh(
    number: int, context: Context, corpus: Corpus, traits: TraitFinder, memo: Sequence[dict[str, Verdict]]
) -> Weighing:
    """The features of a row's entry in a case; ``memo`` has a place for the verdicts of each reading of the case."""
    row = corpus.rows[number]
    conditions, weighed = _best_table(row, context, traits, memo)
    features: dict[str, float] = {}
    hits = context.hits.get(row.id, ())
    _add_lines(features, hits, context)
    shared = tuple(sighting for name, sighting in context.symptoms.items() if name in row.symptoms)
    _add_symptoms(features, row, shared, context, corpus)
    _add_facts(features, weighed)
    features["holds-and-shows"] = features["holds"] * features.get("symptom", 0.0)
    spoken_for, against = _contrasts(row, context)
    features["contrast-for"] = float(bool(spoken_for))
    features["contrast-against"] = float(bool(against))
    features["contrast-elsewhere"] = float(bool(context.case.contrasts) and not spoken_for and not against)
    answering = _answering(row, weighed.verdict)
    features["answered"] = float(bool(answering))
    _add_names(features, row, answering, context)
    _add_words(features, number, context)
    _add_prior(features, row, context)
    kept = {name: value for name, value in features.items() if value}
    return Weighing(row, kept, conditions, weighed, hits, shared, spoken_for, against, weighed.verdict)


def _best_table(
    row: Row, context: Context, traits: TraitFinder, memo: Sequence[dict[str, Verdict]]
) -> tuple[Mapping[str, Any], Weighed]:
    """The table, and the reading of the case, with the fewest conditions that fail and the most that hold."""
    readings = (context.judged, *context.variants)
    judged = (
        (conditions, weigh_table(conditions, reading.view, traits, known, reading.inferred))
        for reading, known in zip(readings, memo)
        for conditions in row.affected
    )
    return max(judged, key=lambda each: _closeness(each[1]))


def _closeness(weighed: Weighed) -> tuple[int, bool, int, int]:
    verdict = weighed.verdict
    missing = sum(part.holds is None for part in weighed.parts.values())
    return -len(weighed.failed()), verdict.holds is True or verdict.narrowed, len(weighed.held()), -missing


def _add_lines(features: dict[str, float], hits: Sequence[Hit], context: Context) -> None:
    if hits:
        features["line"] = 1.0
        features["line-alone"] = max(1 / (1 + hit.others) for hit in hits)
    elif context.hits:
        features["line-of-others"] = 1.0


def _add_symptoms(
    features: dict[str, float], row: Row, shared: Sequence[Sighting], context: Context, corpus: Corpus
) -> None:
    seen = context.symptoms
    total = sum(corpus.symptom_idf.get(name, 0.0) for name in seen)
    if shared:
        weight = sum(corpus.symptom_idf[each.symptom] for each in shared)
        features["symptom"] = weight / total if total else 0.0
        features["symptom-rare"] = max(corpus.symptom_idf[each.symptom] for each in shared) / 7
        features["symptom-in-words"] = float(any(each.origin == "words" for each in shared))
    for kind, names in context.kinds.items():
        own = [name for name in row.symptoms if corpus.kinds.get(name) == kind]
        if own and names.isdisjoint(own):
            features["symptom-against"] = 1.0
    if seen and not shared:
        features["symptom-of-others"] = 1.0
        features["too-loud"] = float(context.is_quiet and row.impact in _LOUD)
        features["too-quiet"] = float(not context.is_quiet and row.impact in _QUIET)


def _add_facts(features: dict[str, float], weighed: Weighed) -> None:
    verdict = weighed.verdict
    features["holds"] = float(verdict.holds is True)
    features["narrowed"] = float(verdict.holds is None and verdict.narrowed)
    failed = Counter("version" if about(path) == "version" else "setting" for path in weighed.failed())
    features |= {f"{name}-fails": min(count, 2) / 2 for name, count in failed.items()}
    held = (path for path in weighed.held() if weighed.parts[path].narrowed)
    features |= features_of_facts(held, (path for path, part in weighed.parts.items() if part.holds is None))


def features_of_facts(held: Iterable[str], missing: Iterable[str]) -> dict[str, float]:
    """The features of conditions that hold and of those whose facts are not known, by their paths."""
    lacking = [about(path) for path in missing]
    holding = Counter(map(about, held))
    return {
        **{f"{name}-holds": min(count, 2) / 2 for name, count in holding.items()},
        "missing": math.log1p(len(lacking)) / 2,
        "missing-model": float("model" in lacking),
        "missing-trait": float("trait" in lacking),
    }


def about(path: str) -> str:
    """What a condition is about."""
    if distribution_of(path) or path in ("python", "cuda.runtime"):
        return "version"
    if path in ("training.framework", "training.runs_on"):
        return "framework"
    return _SECTIONS.get(path.partition(".")[0], "setting")


def _contrasts(row: Row, context: Context) -> tuple[tuple[Contrast, ...], tuple[Contrast, ...]]:
    """The contrasts that the entry explains, and those that it contradicts."""
    spoken_for: list[Contrast] = []
    against: list[Contrast] = []
    for contrast in context.case.contrasts:
        told = [
            _told_apart(contrast, conditions[contrast.path])
            for conditions in row.affected
            if contrast.path in conditions
        ]
        if True in told:
            spoken_for.append(contrast)
        elif False in told:
            against.append(contrast)
    return tuple(spoken_for), tuple(against)


def _told_apart(contrast: Contrast, condition: object) -> bool | None:
    """Whether a condition holds where it failed and fails where it worked."""

    def held(value: object) -> bool | None:
        return None if isinstance(value, Unknown) else match_value(contrast.path, condition, value)

    failed = None if contrast.failed is None else held(contrast.failed)
    worked = None if contrast.worked is None else held(contrast.worked)
    if failed is False or worked is True:
        return False
    return True if worked is False or (failed is True and contrast.worked is None) else None


def _answering(row: Row, verdict: Verdict) -> tuple[str, ...]:
    """The packages at fault that tables give for an error line; none of an entry that speaks of certain packages."""
    computed = row.packages == _ANY_PACKAGE
    return tuple(dict.fromkeys(name for each in verdict.occurrences for name in each.packages)) if computed else ()


def _add_names(features: dict[str, float], row: Row, answering: Sequence[str], context: Context) -> None:
    """Whether the packages of an entry are named; those that an error line leads to are, in its own way."""
    at_fault = answering or row.packages
    packages = [name for name in at_fault if name not in _NO_PACKAGES]
    if not packages:
        return
    named = [name for name in packages if name in context.named]
    features["named"] = len(named) / len(packages)
    features["unnamed"] = float(not named and not answering and not features["holds"])
    most = max(context.named.values(), default=1)
    features["named-often"] = max((context.named[name] for name in named), default=0) / most


def _add_words(features: dict[str, float], number: int, context: Context) -> None:
    """How much of the words of the case, and of its errors, the entry's texts hold."""
    text, errors = context.alike
    features["alike"] = text.share(number)
    features["alike-most"] = text.of_best(number)
    features["identifiers"] = text.share_of_identifiers(number)
    features["error-alike-most"] = errors.of_best(number)


def _add_prior(features: dict[str, float], row: Row, context: Context) -> None:
    features["confirmed"] = _CONFIDENCES.index(row.confidence) / 3
    features["often-met"] = math.log1p(row.sources) / 3
    if context.day is not None:
        days = (date.fromisoformat(row.published) - context.day).days
        features["days-away"] = min(abs(days) / 730, 1.0)


def readings(context: Context) -> Sequence[dict[str, Verdict]]:
    """An empty memo for `weigh`."""
    return [{} for _ in (context.judged, *context.variants)]


def names(weighings: Iterable[Weighing]) -> tuple[str, ...]:
    """The features that occur, in the order of their names."""
    return tuple(sorted({name for weighing in weighings for name in weighing.features}))
