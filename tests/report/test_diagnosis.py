"""The diagnosis as people read it: short where nothing is known, and no wider than the terminal."""

from __future__ import annotations

import re
from functools import cache

import pytest

from compatcheck import matrix
from compatcheck.pipelines.diagnose import Given, diagnose
from compatcheck.report import render
from compatcheck.report.subjects import diagnosis
from compatcheck.results.diagnoses import Diagnosis
from compatcheck.terminal.screen import Screen
from tests.conftest import ROOT

NAN = ROOT / "tests" / "symptoms" / "logs" / "transformers-4.48-nan-from-step-16.log"


@cache
def found() -> Diagnosis:
    return diagnose(Given((str(NAN),)), matrix.load())


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_on_a_terminal_no_row_is_wider_than_it(columns: int) -> None:
    screen = Screen(columns, is_terminal=True, colour=True)
    rows = re.sub(r"\x1b\[[0-9;]*m", "", render(diagnosis.document(found()), "text", screen)).split("\n")
    assert max(len(row) for row in rows if not re.search("/|cudnn_sdp", row)) <= columns


def test_three_explanations_are_printed_and_the_rest_counted() -> None:
    text = render(diagnosis.document(found()), "text")
    shown = len(re.findall(r"(?m)^ \d\. ", text))
    assert 1 <= shown <= 3 and len(text.split("\n")) <= 70
    assert f"{len(found().explanations) - shown} less probable: --all" in text
    everything = render(diagnosis.document(found(), everything=True), "text")
    assert len(re.findall(r"(?m)^[ \d]\d\. ", everything)) == len(found().explanations)


def test_a_long_shot_has_one_remedy_and_no_warning() -> None:
    text = render(diagnosis.document(found(), everything=True), "text")
    shots = [each for each in re.split(r"(?m)^[ \d]\d\. ", text) if each.startswith("long shot")]
    assert shots
    assert all(len(re.findall(r"(?m)^(?:fix|or) ", each)) == 1 and "misleads" not in each for each in shots)
