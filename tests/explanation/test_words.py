"""How alike a text is to entries: by their rare words, in either language, whatever its length."""

from __future__ import annotations

import pytest

from compatcheck import matrix
from compatcheck.explanation.features import corpus
from compatcheck.explanation.words import Words, is_identifier


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_summary_is_most_alike_to_its_own_entry(known: matrix.Matrix, language: str) -> None:
    rows = corpus(known)
    sample = range(0, len(rows.rows), 41)
    first = 0
    for number in sample:
        (raw,) = known.read([rows.rows[number].at])
        likeness = rows.words.compare(matrix.in_language(known, raw, language)["summary"])
        first += likeness.scores[number] == likeness.best
    assert first >= 0.9 * len(sample)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    words = Words({"loss": "0 1 1", "sinks": "2"}, [5, 5, 5])
    likeness = words.compare("the loss sinks")
    assert likeness.best == likeness.scores[2] > 3 * likeness.scores[0]
    assert likeness.share(2) > likeness.share(1) > 0 and 0 < likeness.of_best(2) < 1.0


def test_repeating_a_word_soon_adds_nothing() -> None:
    words = Words({"nan": "0"}, [5, 5])
    scores = [words.compare("nan " * count).scores[0] for count in (1, 2, 4, 1000)]
    assert scores == sorted(scores) and scores[3] < 3 * scores[0]


def test_a_text_without_known_words_is_like_nothing() -> None:
    likeness = Words({"nan": "0"}, [5]).compare("qwertz 你好")
    assert (likeness.share(0), likeness.of_best(0), likeness.share_of_identifiers(0)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("word", "named"), [("overlap_comm", True), ("2.5.0", True), ("fp16", True), ("loss", False), ("__", False)]
)
def test_identifiers_are_told_from_words(word: str, named: bool) -> None:
    assert is_identifier(word) is named
