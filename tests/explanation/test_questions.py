"""Which question divides explanations best, and what an answer makes of their probabilities."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.explanation import questions
from compatcheck.explanation.features import Weighing
from compatcheck.explanation.ranking import Ranked
from compatcheck.matrix.matching.match import Verdict, Weighed
from compatcheck.matrix.rows import Row
from compatcheck.results.diagnoses import Answer

OVERLAP, STAGE, TORCH = "training.deepspeed.overlap_comm", "training.deepspeed.zero_stage", "distributions.torch"


def explanation(name: str, probability: float, **conditions: Any) -> Ranked:
    """An explanation of which no condition is known."""
    named = {path.replace("__", "."): value for path, value in conditions.items()}
    verdict = Verdict(None, missing=tuple(named))
    row = Row(name, (), (), "2024-01-01", "reported", "crash", 1, (), (named,), (0, 0))
    return Ranked(probability, 0.0, Weighing(row, {}, named, Weighed(verdict, {}), (), (), (), (), verdict))


def divides(path: str, condition: object, *explained: Ranked) -> float:
    chances = [questions._yes(path, condition, each) for each in explained]
    return questions.expected_change(explained, chances, questions._ELSEWHERE)


def test_a_fact_that_one_of_two_needs_divides_more_than_one_that_both_need() -> None:
    one = explanation("A", 0.45, training__deepspeed__overlap_comm=True, training__deepspeed__zero_stage=2)
    other = explanation("B", 0.45, training__deepspeed__zero_stage=2)
    assert divides(OVERLAP, True, one, other) > 2 * divides(STAGE, 2, one, other)


def test_a_fact_divides_most_where_another_explanation_needs_its_opposite() -> None:
    one = explanation("A", 0.45, training__deepspeed__overlap_comm=True)
    opposite = explanation("B", 0.45, training__deepspeed__overlap_comm=False)
    silent = explanation("B", 0.45)
    assert divides(OVERLAP, True, one, opposite) > divides(OVERLAP, True, one, silent) > 0.2


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_what_is_settled_cannot_be_divided(probability: float) -> None:
    one = explanation("A", probability, training__deepspeed__overlap_comm=True)
    rest = explanation("B", 1 - probability)
    assert divides(OVERLAP, True, one, rest) == pytest.approx(0.0)


def test_the_expected_change_is_that_of_both_answers() -> None:
    """Against the definition: the distributions after yes and after no, each by how probable that answer is."""
    explained = [explanation("A", 0.5), explanation("B", 0.2), explanation("C", 0.1)]
    chances, elsewhere, none = [0.95, 0.3, 0.05], 0.3, 0.2
    before = [0.5, 0.2, 0.1, none]
    expected = 0.0
    for says in ([*chances, elsewhere], [1 - chance for chance in (*chances, elsewhere)]):
        total = sum(share * chance for share, chance in zip(before, says))
        after = [share * chance / total for share, chance in zip(before, says)]
        expected += total * sum(abs(a - b) for a, b in zip(after, before)) / 2
    assert questions.expected_change(explained, chances, elsewhere) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("one", "other", "can"),
    [
        (">=2.5.0,<2.5.1", ">=2.4", True),
        (">=2.5.0,<2.5.1", ">=2.5.1", False),
        ("<2.4", "<2.2", True),
        ("<2.4", ">=2.4", False),
        (True, False, False),
        (["sdpa", "eager"], "sdpa", True),
        (["sdpa", "eager"], "flash_attention_2", False),
        ("absent", ">=1.0", False),
        ("present", ">=1.0", True),
    ],
)
def test_conditions_on_one_fact_hold_together_or_not(one: Any, other: Any, can: bool) -> None:
    assert questions._can_both_hold(one, other) is can
    assert questions._can_both_hold(other, one) is can


@pytest.mark.parametrize(("holds", "first"), [(True, "A"), (False, "B"), (None, "A")])
def test_an_answer_ranks_anew(holds: bool | None, first: str) -> None:
    known = [explanation("A", 0.4, distributions__torch="<2.5"), explanation("B", 0.35, distributions__torch=">=2.5")]
    after = questions.answered(known, [Answer(TORCH, "<2.5", holds)])
    assert after[0].weighing.row.id == first and sum(each.probability for each in after) <= 1
    if holds is None:
        assert [each.probability for each in after] == pytest.approx([0.4, 0.35])
    else:
        assert after[0].probability > 0.6 > 0.1 > after[1].probability


@pytest.mark.parametrize(
    ("path", "condition", "text"),
    [
        (OVERLAP, True, "is deepspeed.overlap_comm on?"),
        (OVERLAP, False, "is deepspeed.overlap_comm off?"),
        (TORCH, ">=2.5.0,<2.5.1", "is torch >=2.5.0,<2.5.1?"),
        ("distributions.apex", "present", "is apex present?"),
        ("distributions.apex", "absent", "is apex absent?"),
        ("training.attention", ["sdpa", "eager"], "is attention sdpa / eager?"),
    ],
)
def test_a_condition_is_asked_as_a_question(path: str, condition: Any, text: str) -> None:
    assert questions.question_of(path, condition) == text
