"""The counter of literal settings in scripts sees what is read, missed and wrong."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from compatcheck.project.script_calls.calls import ScriptCalls
from tools import script_literals

SCRIPT = """\
import torch
from transformers import AutoModel, TrainingArguments
rate = 1e-4
AutoModel.from_pretrained("m", torch_dtype=torch.bfloat16, use_cache=False)
TrainingArguments(output_dir="out", learning_rate=rate, logging_steps=len(input()))
"""


def counted(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["script_literals", str(folder), "--list"])
    assert script_literals.main() == 0
    return capsys.readouterr().out


def test_literals_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "other.py").write_text("Config(x=1)\n")
    said = counted(tmp_path, monkeypatch, capsys)
    assert "100.0 %" in said
    for count in ("'scripts': 1", "'literal read': 3", "'other read': 1", "'other missed': 1"):
        assert count in said


def test_wrong_and_missed_values_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    real = script_literals.read_calls

    def altered(path: str) -> ScriptCalls:
        calls = [call for call in real(path).calls if call.callee.endswith("TrainingArguments")]
        changed: Mapping[str, object] = {**calls[0].keywords, "output_dir": "elsewhere"}
        return ScriptCalls((calls[0]._replace(keywords=changed),))

    monkeypatch.setattr(script_literals, "read_calls", altered)
    said = counted(tmp_path, monkeypatch, capsys)
    assert "wrong" in said and "'literal missed': 2" in said and "0.0 %" in said
