"""Probabilities of explanations: a linear model over features, and one more outcome, that no entry explains the case.

The probability of an entry is its share of the exponentials of all scores, that of no entry included, so the
probabilities of all entries add up to less than 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compatcheck import matrix
from compatcheck.environment.paths import distribution_of
from compatcheck.explanation.features import (
    Context,
    Corpus,
    Weighing,
    context,
    corpus,
    features_of_facts,
    is_pointed_at,
    readings,
    weigh,
)
from compatcheck.results.cases import Case
from compatcheck.results.diagnoses import Band
from compatcheck.results.findings import Finding

NONE = "none"
"""The weight of the outcome that no entry explains the case."""


LIKELY, PLAUSIBLE = 0.6, 0.2


class Ranked(NamedTuple):
    """An entry with its probability."""

    probability: float
    score: float
    weighing: Weighing


def weighings(case: Case, known: matrix.Matrix, rows: Corpus) -> tuple[Context, list[Weighing]]:
    """Each entry that anything in a case points at, in its light."""
    seen = context(case, known, rows)
    traits, memo = matrix.trait_finder(known.table), readings(seen)
    chosen = (number for number in range(len(rows.rows)) if is_pointed_at(number, seen, rows))
    return seen, [weigh(number, seen, rows, traits, memo) for number in chosen]


def score(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights.get(name, 0.0) * value for name, value in features.items())


def probabilities(scores: Sequence[float], none: float) -> list[float]:
    """The probability of each outcome but none."""
    top = max((*scores, none))
    shares = [math.exp(each - top) for each in scores]
    total = sum(shares) + math.exp(none - top)
    return [share / total for share in shares]


def rank(case: Case, known: matrix.Matrix) -> tuple[Context, list[Ranked]]:
    """Every entry by its probability, the most probable first."""
    seen, weighed = weighings(case, known, corpus(known))
    return seen, ranked(weighed, weights_of(known))


def ranked(weighed: Sequence[Weighing], weights: Mapping[str, float]) -> list[Ranked]:
    """The entries by their probability; of equals, the older id comes first."""
    scores = [score(each.features, weights) for each in weighed]
    chances = probabilities(scores, weights.get(NONE, 0.0))
    found = [Ranked(*each) for each in zip(chances, scores, weighed)]
    return sorted(found, key=lambda each: (-each.score, each.weighing.row.id))


def score_of_finding(finding: Finding, weights: Mapping[str, float]) -> float:
    """How much the facts alone speak for a finding."""
    return score(features_of_facts((fact.fact for fact in finding.because), finding.missing), weights)


def weights_of(known: matrix.Matrix) -> Mapping[str, float]:
    """The committed weights, by feature; none of a small matrix of one's own that lacks the table."""
    weights: Mapping[str, float] = known.table("ranking")["weights"] if "ranking" in known.tables else {}
    return weights


def band_of(ranked: Ranked) -> Band:
    """How probable an entry is, in words; `docs/explanation/accuracy.md` says how often each of them is right.

    One that a known fact rules out is a long shot, and plausible at best where its own error line is in the input.
    Plausible at best is one that shares its error line with others and needs a package of which no version is known.
    """
    probability, weighing = ranked.probability, ranked.weighing
    if weighing.weighed.failed():
        return "plausible" if weighing.hits and probability >= PLAUSIBLE else "long shot"
    is_shared = weighing.features.get("line-alone", 1.0) < 1 and any(map(distribution_of, weighing.verdict.missing))
    if probability >= LIKELY and not is_shared:
        return "likely"
    return "plausible" if probability >= PLAUSIBLE else "long shot"
