"""The reports with an error of names, parameters or methods, and what their first explanation is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from tools.score_interface_errors import Report, kind_of, reports, score

KEYWORD = "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'use_dora'"
IMPORT = "ImportError: cannot import name 'EncoderDecoderCache' from 'transformers'"
FIX = {"packages": {"peft": ">=0.9.0"}, "config": {}}


def _row(name: str, text: str, **more: Any) -> str:
    return json.dumps({"id": name, "text": text, "cause": {"packages": ["peft"]}, "fix": FIX, **more})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (KEYWORD, "unexpected keyword"),
        ("LlamaAttention.forward() missing 1 required positional argument: 'position_embeddings'", "missing argument"),
        ("log() takes 2 positional arguments but 3 were given", "positional arguments"),
        ("log() takes from 1 to 2 positional arguments but 3 were given", "positional arguments"),
        ("AttributeError: module 'torch.compiler' has no attribute 'set_stance'", "no attribute"),
        ("ModuleNotFoundError: No module named 'triton.ops'", "no module"),
        ("TypeError: 'ModelOutput' object is not subscriptable", "wrong kind"),
        (f"{KEYWORD}\nwith the old one:\n{IMPORT}", "cannot import"),
        ("RuntimeError: CUDA error: out of memory", None),
    ],
)
def test_kind_is_that_of_the_last_error_line(text: str, kind: str | None) -> None:
    assert kind_of(text) == kind


def test_a_report_in_two_files_counts_once_and_in_its_half(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(_row("one", KEYWORD, split="test") + "\n" + _row("two", "no error line"))
    block = {"env_block": "peft 0.7.0", "symptom": {"message": KEYWORD}}
    (tmp_path / "b.jsonl").write_text(
        json.dumps({"id": "one", "cause": {"packages": ["peft"]}, "fix": FIX, **block})
        + "\n"
        + json.dumps({"id": "three", "cause": {"packages": ["peft"]}, "fix": FIX, **block})
    )
    found = list(reports([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]))
    assert [(each.id, each.split, each.text) for each in found] == [
        ("one", "test", KEYWORD),
        ("three", "", f"peft 0.7.0\n\n{KEYWORD}"),
    ]


def test_first_explanation_is_judged_by_packages_and_pin() -> None:
    known = matrix.load()
    report = Report("one", "unexpected keyword", f"peft 0.7.0\n{KEYWORD}\n", ("peft",), FIX, "")
    assert score(report, known).right
    elsewhere = score(report._replace(cause=("trl",)), known)
    assert (elsewhere.packages, elsewhere.pin) == (False, True)
    otherwise = score(report._replace(fix={"packages": {"peft": "<0.5"}, "config": {}}), known)
    assert (otherwise.packages, otherwise.pin) == (True, False)
    assert not score(report._replace(text="hello"), known).entry
