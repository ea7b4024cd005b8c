"""The diagnosis as people read it: short where nothing is known, and no wider than the terminal."""

from __future__ import annotations

import re
from functools import cache

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.pipelines.diagnose import diagnose
from compatcheck.report import render
from compatcheck.report.subjects import diagnosis
from compatcheck.results.logs import Diagnosis
from compatcheck.terminal.screen import Screen
from tests.conftest import ROOT

NAN = ROOT / "tests" / "symptoms" / "logs" / "transformers-4.48-nan-from-step-16.log"


@cache
def found() -> Diagnosis:
    return diagnose([str(NAN)], Environment({}), matrix.load())


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_on_a_terminal_no_row_is_wider_than_it(columns: int) -> None:
    screen = Screen(columns, is_terminal=True, colour=True)
    rows = re.sub(r"\x1b\[[0-9;]*m", "", render(diagnosis.document(found()), "text", screen)).split("\n")
    assert max(len(row) for row in rows if "/" not in row) <= columns


def test_an_entry_that_no_fact_speaks_for_is_told_by_what_decides_and_one_way_out() -> None:
    assert {each.fit for each in found().explanations} == {"open"}
    text = render(diagnosis.document(found()), "text")
    entries = text.split(". would fit ")[1:]
    assert len(entries) == len(found().explanations) and len(text.split("\n")) <= 50
    assert all(len(re.findall(r"(?m)^(?:fix|or) ", each)) == 1 and "misleads" not in each for each in entries)
