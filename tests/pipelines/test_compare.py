"""The search for the release that changes a result, and what is written of it."""

from __future__ import annotations

import random
import sys

import pytest

from compatcheck.pipelines import compare
from compatcheck.pipelines.compare._search import change
from compatcheck.results.comparisons import Cause, Comparison, Difference, Side

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.mark.parametrize("seed", range(20))
def test_change_is_found_with_as_many_trials_as_halving_takes(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(1, 40)
    first = chance.randint(1, count)
    asked: list[int] = []

    def ask(at: int) -> bool:
        asked.append(at)
        return at >= first

    assert change([1.0] * count, ask) == (first - 1, first)
    assert len(asked) <= count.bit_length() and len(set(asked)) == len(asked)


def test_likeliest_step_is_asked_about_first() -> None:
    asked: list[int] = []

    def ask(at: int) -> bool:
        asked.append(at)
        return True

    assert change([8.0, 1.0, 1.0, 0.1], ask) == (0, 1)
    assert asked == [1]


def test_steps_that_cannot_be_tried_leave_the_change_open_between_the_others() -> None:
    assert change([1.0] * 5, lambda at: None if at in (2, 3) else at >= 3) == (1, 4)
    assert change([1.0] * 3, lambda at: None) == (0, 3)


def comparison(cause: Cause | None) -> Comparison:
    versions = {"torch": "2.13.0", "transformers": "4.45.2", "accelerate": "1.0.1"}
    first = Difference("llama, Trainer", "gradient", "lm_head.weight", 1, 1.5, 6.0, 0.75, 900.0)
    sides = (Side("old.txt", versions), Side("new.txt", {**versions, "transformers": "4.46.3"}))
    return Comparison(*sides, 50, (first,), cause=cause)


def test_draft_is_an_entry_of_the_matrix_but_for_what_is_marked() -> None:
    text = compare.draft(comparison(Cause("transformers", "4.45.2", "4.46.0")))
    assert text is not None
    entry = tomllib.loads(text)
    assert entry["affected"] == [{"distributions": {"transformers": ">=4.46.0"}}]
    assert entry["reproduce"]["bad"] == ["torch==2.13.0", "accelerate==1.0.1", "transformers==4.46.0"]
    assert entry["reproduce"]["good"] == ["torch==2.13.0", "accelerate==1.0.1", "transformers==4.45.2"]
    installed = {"torch": "2.13.0", "transformers": "4.46.0"}
    assert entry["examples"] == [{"environment": {"distributions": installed}}]
    assert "TODO" in entry["mechanism"]


def test_draft_of_a_downgrade_bounds_the_range_from_above() -> None:
    text = compare.draft(comparison(Cause("transformers", "4.48.1", "4.48.0"))) or ""
    assert 'distributions.transformers = "<=4.48.0"' in text


def test_without_a_cause_there_is_no_draft() -> None:
    assert compare.draft(comparison(None)) is None
