"""What of a case speaks for an entry and against it, in numbers that a linear model weighs.

Each feature is about one kind of evidence: an error line, a symptom, a fact that holds or fails, a contrast, a package
that is named, words in common, and how well known the fault is. Those of a kind that the case lacks are 0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from compatcheck import matrix
from compatcheck.environment import Environment, Unknown
from compatcheck.environment.paths import distribution_of
from compatcheck.inference.inferred import Judged
from compatcheck.inference.report_date import day_of_report
from compatcheck.matrix.matching.match import TraitFinder, Verdict, Weighed, match_value, weigh_table
from compatcheck.matrix.rows import Row
from compatcheck.packages.names import normalised
from compatcheck.results.cases import Case, Contrast, Sighting
from compatcheck.results.logs import Hit

_CONFIDENCES = ("reported", "corroborated", "upstream-fixed", "reproduced")
_QUIET = frozenset(("silent-wrong", "divergence", "slow", "oom", "hang"))
_AT_START = frozenset(("import-fail", "install-fail"))
_TOKEN = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
_CALLED = {"pytorch": "torch", "huggingface-transformers": "transformers", "llama-factory": "llamafactory"}


class Corpus(NamedTuple):
    """The rows of a matrix, how rare each term and symptom is among them, and how long each row is in such weights.

    A row has two lengths, without its Chinese terms and with them alone.
    """

    rows: tuple[Row, ...]
    terms: Mapping[str, int]
    idf: Sequence[float]
    identifiers: frozenset[int]
    symptom_idf: Mapping[str, float]
    lengths: Mapping[str, tuple[float, float]]
    chinese: frozenset[int]


class Context(NamedTuple):
    """A case, made ready to be compared with many entries."""

    case: Case
    judged: Judged
    variants: tuple[Judged, ...]
    hits: Mapping[str, Sequence[Hit]]
    symptoms: Mapping[str, Sighting]
    words: frozenset[int]
    lengths: tuple[float, ...]
    named: Mapping[str, int]
    title: frozenset[str]
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
    rows, vocabulary = matrix.rows(known), matrix.terms(known)
    count = len(rows)
    idf = [math.log(count / term.entries) for term in vocabulary.values()]
    squares = [weight * weight for weight in idf]
    chinese = frozenset(term.number for word, term in vocabulary.items() if word[0] > "\u4e00")
    seen = Counter(symptom for row in rows for symptom in row.symptoms)
    return Corpus(
        rows,
        {word: term.number for word, term in vocabulary.items()},
        idf,
        frozenset(term.number for word, term in vocabulary.items() if _is_identifier(word)),
        {name: math.log(count / number) for name, number in seen.items()},
        {row.id: _lengths(row, squares, chinese) for row in rows},
        chinese,
    )


def _lengths(row: Row, squares: Sequence[float], chinese: frozenset[int]) -> tuple[float, float]:
    words = sum(squares[term] for term in row.terms if term not in chinese)
    return math.sqrt(words) or 1.0, math.sqrt(sum(squares[term] for term in row.terms) - words) or 1.0


def _is_identifier(word: str) -> bool:
    """Whether a word is a name of a program's own."""
    return "_" in word.strip("_") or any(letter.isdigit() for letter in word)


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
    words = frozenset(corpus.terms[word] for word in matrix.split_words(text) if word in corpus.terms)
    symptoms: dict[str, Sighting] = {}
    for sighting in case.sightings:
        symptoms.setdefault(sighting.symptom, sighting)
    lengths = tuple(
        math.sqrt(sum(corpus.idf[word] ** 2 for word in part)) or 1.0 for part in _apart(words, corpus.chinese)
    )
    named = _named(text, judged.view)
    title = frozenset(_packages(next((line for line in text.split("\n") if line.strip()), "")[:200]))
    return Context(
        case, judged, variants, hits, symptoms, words, lengths, named, title, day_of_report(case.environment)
    )


def _named(text: str, environment: Environment) -> Mapping[str, int]:
    found = Counter(_packages(text))
    found.update(name for name, version in environment.section("distributions").items() if version)
    return found


def _packages(text: str) -> list[str]:
    tokens = (normalised(token) for token in _TOKEN.findall(text.lower()))
    return [_CALLED.get(token, token) for token in tokens]


def weigh(
    row: Row, context: Context, corpus: Corpus, traits: TraitFinder, memo: Sequence[dict[str, Verdict]]
) -> Weighing:
    """The features of an entry in a case; ``memo`` has a place for the verdicts of each reading of the case."""
    conditions, weighed = _best_table(row, context, traits, memo)
    features: dict[str, float] = {}
    hits = context.hits.get(row.id, ())
    _add_lines(features, hits, context)
    shared = tuple(sighting for name, sighting in context.symptoms.items() if name in row.symptoms)
    _add_symptoms(features, row, shared, context, corpus)
    _add_facts(features, weighed)
    spoken_for, against = _contrasts(row, context)
    features["contrast-for"] = float(bool(spoken_for))
    features["contrast-against"] = float(bool(against))
    features["contrast-elsewhere"] = float(bool(context.case.contrasts) and not spoken_for and not against)
    _add_names(features, row, context)
    _add_words(features, row, context, corpus)
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
        features["line-alone"] = max(1 / (1 + _others(hit, context)) for hit in hits)
    elif context.hits:
        features["line-of-others"] = 1.0


def _others(hit: Hit, context: Context) -> int:
    """How many other entries know the line."""
    return sum(
        any(other.location == hit.location for other in found)
        for entry, found in context.hits.items()
        if entry != hit.entry
    )


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
    elif seen:
        features["symptom-of-others"] = 1.0
    quiet = any(sighting.origin != "error" for sighting in seen.values())
    if quiet and row.impact in _AT_START and not shared:
        features["past-the-import"] = 1.0
    if quiet and row.impact in _QUIET:
        features["quiet"] = 1.0


def _add_facts(features: dict[str, float], weighed: Weighed) -> None:
    verdict = weighed.verdict
    failed, held = weighed.failed(), weighed.held()
    features["holds"] = float(verdict.holds is True)
    features["narrowed"] = float(verdict.holds is None and verdict.narrowed)
    versions = [path for path in failed if distribution_of(path) or path in ("python", "cuda.runtime")]
    features["version-fails"] = min(len(versions), 2) / 2
    features["setting-fails"] = min(len(failed) - len(versions), 2) / 2
    singular = [path for path in held if weighed.parts[path].narrowed]
    for name, paths in (
        ("version-holds", [path for path in singular if distribution_of(path)]),
        ("setting-holds", [path for path in singular if path.startswith("training.")]),
        ("machine-holds", [path for path in singular if path.startswith(("gpu", "every_gpu", "cuda.", "platform."))]),
        ("model-holds", [path for path in singular if path.startswith("model.")]),
        ("trait-holds", [path for path in singular if path == "traits"]),
    ):
        features[name] = min(len(paths), 2) / 2
    missing = [path for path, part in weighed.parts.items() if part.holds is None]
    features["missing"] = math.log1p(len(missing)) / 2
    features["missing-model"] = float(any(path.startswith("model.") for path in missing))
    features["missing-trait"] = float("traits" in missing)


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


def _add_names(features: dict[str, float], row: Row, context: Context) -> None:
    if not row.packages:
        return
    named = [name for name in row.packages if name in context.named]
    features["named"] = len(named) / len(row.packages)
    features["unnamed"] = float(not named)
    features["named-first"] = float(any(name in context.title for name in row.packages))
    most = max(context.named.values(), default=1)
    features["named-often"] = max((context.named[name] for name in named), default=0) / most


def _add_words(features: dict[str, float], row: Row, context: Context, corpus: Corpus) -> None:
    shared = context.words.intersection(row.terms)
    if not shared:
        return
    alike, covered = 0.0, 0.0
    for terms, length, own in zip(_apart(shared, corpus.chinese), context.lengths, corpus.lengths[row.id]):
        product = sum(corpus.idf[term] ** 2 for term in terms)
        alike = max(alike, product / (own * length))
        covered = max(covered, product / own**2)
    features["alike"], features["covered"] = alike, covered
    features["identifiers"] = min(sum(corpus.idf[term] for term in shared & corpus.identifiers) / 30, 1.0)


def _apart(terms: frozenset[int], chinese: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
    return terms - chinese, terms & chinese


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
