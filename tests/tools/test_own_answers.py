"""Error lines that are made from the tables of releases, to fit the ranking with."""

from __future__ import annotations

from compatcheck import matrix
from compatcheck.explanation.features import corpus
from tools.labelled.whole_texts import own_answers


def test_lost_parameters_are_lines_that_the_tables_answer(known: matrix.Matrix) -> None:
    found = list(own_answers(known, corpus(known), 400))
    assert len(found) >= 2
    for each in found:
        right = {weighing.row.id for weighing, is_right in zip(each.weighings, each.right) if is_right}
        assert "CC-2026-3124" in right and "unexpected keyword argument" in each.text.text
    assert any(each.text.text.startswith("TypeError") for each in found)
    assert any(not each.text.text.startswith("TypeError") for each in found)
