"""An entry that stands on reports alone is never stated as a fact."""

from __future__ import annotations

import shutil
from pathlib import Path

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.pipelines.check import check
from compatcheck.report import render
from compatcheck.report.subjects.check import document
from tests.conftest import SOURCES
from tests.matrix.test_entries import ENTRY

SUSPECTED = Environment({"distributions": {"torch": "2.5.0"}, "training": {"packing": True}})


def _matrix(folder: Path, confidence: str) -> matrix.Matrix:
    shutil.copytree(SOURCES / "tables", folder / "tables")
    (folder / "torch").mkdir()
    entry = ENTRY.replace('confidence = "reported"', f'confidence = "{confidence}"')
    (folder / "torch" / "CC-2026-9999.toml").write_text(entry, encoding="utf-8")
    return matrix.load(str(folder))


def test_a_report_alone_is_possible_and_says_why(tmp_path: Path) -> None:
    report = check(SUSPECTED, _matrix(tmp_path, "reported"))
    assert [(finding.status, finding.missing) for finding in report.findings] == [("possible", ())]
    assert "based on unconfirmed reports only" in render(document(report), "text")


def test_a_confirmed_one_is_affected(tmp_path: Path) -> None:
    assert [f.status for f in check(SUSPECTED, _matrix(tmp_path, "corroborated")).findings] == ["affected"]
