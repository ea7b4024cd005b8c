"""A project folder written out, judged by the command from inside it as its owner types it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from compatcheck.cli import cli

A100 = ("--assume", "gpu.compute_capability=8.0")


class Judged(NamedTuple):
    """What the command said: its exit status, and each affected finding with its place as ``file:line``."""

    exit_status: int
    affected: Mapping[str, str]


Judge = Callable[..., Judged]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Write the files of a project and run the command in it; ``changes`` edits one of the files before."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "COMPATCHECK_LANG"):
        monkeypatch.delenv(name, raising=False)

    def run(files: Mapping[str, str], *arguments: str, changes: Mapping[str, tuple[str, str]] = {}) -> Judged:
        for name, text in files.items():
            old, new = changes.get(name, ("", ""))
            assert old in text, f"{name} has no {old!r}"
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        result = CliRunner().invoke(cli, [".", "--no-probe", "--format", "json", *arguments])
        assert result.exit_code in (0, 1), result.output
        report = json.loads(result.stdout)
        findings = [each for project in report.get("projects", [report]) for each in project["findings"]]
        bad = [each for each in findings if each["status"] == "affected"]
        return Judged(result.exit_code, {each["id"]: _place(each.get("location")) for each in bad})

    return run


def _place(location: Mapping[str, Any] | None) -> str:
    if not location:
        return ""
    line = location.get("line")
    return location["file"].replace(os.sep, "/") + (f":{line}" if line else "")
