"""What would tell explanations apart: the one fact or probe whose answer is expected to move the most probability.

Where an explanation is the cause, its conditions hold; where another one is, they hold as often as elsewhere. So each
explanation says how probable a yes is, and either answer moves its probability. Over yes and no by their own
probability, the expected change of the distribution is the sum of p * |yes of this one - yes of all|.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from functools import cache
from typing import Any

from compatcheck.explanation.ranking import Ranked
from compatcheck.language import gettext as _
from compatcheck.packages.versions import contains, is_range, parse_range, parse_version
from compatcheck.results.diagnoses import Answer, Ask
from compatcheck.results.findings import Finding

_MOST = 3
_NOBODY_ANSWERS = ("traits", "training.observed.symptoms")
"""Conditions that are no question: what follows from files, and what the input shows."""

_SURE = 0.95
"""How probable it is that a condition of the cause holds; entries and reports are wrong at times."""

_ELSEWHERE = 0.3
"""How often a condition holds where the cause does not need it."""

_OVERLAPPING = 0.5
"""The same where the cause needs another value of that fact, and both can hold."""

_FALSE_ALARM = 0.05
"""How often the probe of an entry fails where that entry is not the cause."""

_WORTH_OF_A_PROBE = 0.5
"""What a probe has to divide more than a fact to be asked for first: it takes the machine that failed."""


def asks(finding: Finding, ranked: Ranked, explained: Sequence[Ranked], answers: Sequence[Answer] = ()) -> list[Ask]:
    """The questions that would decide about one explanation, the one that divides best first."""
    settled = {answer.fact for answer in answers}
    found = []
    for path, asked in _lacking(ranked).items():
        if path not in settled:
            chances = [_yes(path, asked, each) for each in explained]
            found.append(_question(path, asked, expected_change(explained, chances, _ELSEWHERE)))
    if finding.probe_name:
        request = f" --request {shlex.quote(json.dumps(finding.probe_request))}" if finding.probe_request else ""
        command = f"compatcheck probe {finding.probe_name}{request}"
        chances = [_SURE if each is ranked else _FALSE_ALARM for each in explained]
        text = _("run {command} in the environment that failed").format(command=command)
        found.append(Ask(text, command, divides=expected_change(explained, chances, _FALSE_ALARM)))
    return sorted(found, key=lambda ask: -ask.divides * (1 if ask.fact else _WORTH_OF_A_PROBE))[:_MOST]


def expected_change(explained: Sequence[Ranked], chances: Sequence[float], elsewhere: float) -> float:
    """How much of the probability an answer is expected to move, from 0 to 1.

    ``chances`` holds the probability of a yes under each explanation, and ``elsewhere`` where none of them is right.
    """
    shares = [each.probability for each in explained]
    none = max(0.0, 1 - sum(shares))
    overall = sum(share * chance for share, chance in zip(shares, chances)) + none * elsewhere
    moved = sum(share * abs(chance - overall) for share, chance in zip(shares, chances))
    return moved + none * abs(elsewhere - overall)


def answered(ranked: Sequence[Ranked], answers: Sequence[Answer]) -> list[Ranked]:
    """The explanations by their probability once questions are answered, by Bayes' rule."""
    weights = [each.probability for each in ranked]
    none = max(0.0, 1 - sum(weights))
    for answer in answers:
        if answer.holds is None:
            continue
        chances = [_yes(answer.fact, answer.condition, each) for each in ranked]
        weights = [weight * (chance if answer.holds else 1 - chance) for weight, chance in zip(weights, chances)]
        none *= _ELSEWHERE if answer.holds else 1 - _ELSEWHERE
    total = (sum(weights) + none) or 1.0
    found = [each._replace(probability=weight / total) for each, weight in zip(ranked, weights)]
    return sorted(found, key=lambda each: (-each.probability, each.weighing.row.id)) if answers else found


def _yes(path: str, asked: object, other: Ranked) -> float:
    """How probable it is that a condition holds if an explanation is the cause."""
    conditions = other.weighing.conditions
    if path not in conditions:
        return _ELSEWHERE
    if conditions[path] == asked:
        return _SURE
    return _OVERLAPPING if _can_both_hold(asked, conditions[path]) else 1 - _SURE


def _can_both_hold(one: Any, other: Any) -> bool:
    if "absent" in (one, other):
        return False
    if "present" in (one, other):
        return True
    if isinstance(one, str) and isinstance(other, str) and is_range(one) and is_range(other):
        return _overlap(one, other)
    ours, theirs = ({*map(str, each)} if isinstance(each, list) else {str(each)} for each in (one, other))
    return bool(ours & theirs) or any(map(is_range, ours | theirs))


@cache
def _overlap(one: str, other: str) -> bool:
    ranges = [parse_range(one), parse_range(other)]
    bounds = [comparator.version for each in ranges for comparator in each]
    lowest = parse_version("0")
    candidates = [*bounds, lowest] if lowest else bounds
    return any(all(contains(each, version) for each in ranges) for version in candidates)


def _lacking(ranked: Ranked) -> dict[str, Any]:
    """The conditions of an entry of which the facts are not known."""
    weighing = ranked.weighing
    return {
        path: weighing.conditions[path]
        for path in dict.fromkeys(weighing.verdict.missing)
        if path in weighing.conditions and path not in _NOBODY_ANSWERS
    }


def question_of(path: str, asked: Any) -> str:
    """A condition as a question that yes or no answers."""
    name = path.removeprefix("training.").removeprefix("distributions.")
    if asked == "present":
        return _("is {name} present?").format(name=name)
    if asked == "absent":
        return _("is {name} absent?").format(name=name)
    if isinstance(asked, bool):
        return (_("is {name} on?") if asked else _("is {name} off?")).format(name=name)
    words = " / ".join(map(str, asked)) if isinstance(asked, list) else str(asked)
    return _("is {name} {condition}?").format(name=name, condition=words)


def _question(path: str, asked: Any, divides: float) -> Ask:
    value = asked[0] if isinstance(asked, list) and asked else asked
    if isinstance(value, bool):
        example = str(value).lower()
    else:
        example = "..." if value == "present" or str(value)[:1] in "<>=!" else str(value)
    return Ask(question_of(path, asked), f"--assume {path}={example}", path, divides, asked)
