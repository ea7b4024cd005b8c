"""Real children in an interpreter with torch: healthy cases pass, planted defects are caught."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import run

pytestmark = pytest.mark.stack


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([{"labels": [-100, 5]}, {"input_ids": [1, 2], "labels": [-100, 7]}], "pass"),
        ([{"labels": [-100, 5]}, {"labels": [-100, -100]}], "fail"),
        ([{"labels": [[5, 6]]}], "fail"),
        ([{"text": "no labels"}], "skip"),
        ([], "skip"),
    ],
)
def test_labels_of_a_file(stack: Target, tmp_path: Path, lines: list[dict[str, Any]], outcome: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    result = run("labels_masked", stack, {"samples_file": str(path)})
    assert result.outcome == outcome, result.why


def test_labels_without_samples_show_the_mechanism(stack: Target) -> None:
    result = run("labels_masked", stack, {})
    assert result.outcome == "skip"
    assert result.measured["mechanism"] == {"loss": "nan", "gradient_norm": 0.0}
