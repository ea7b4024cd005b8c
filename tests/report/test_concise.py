"""Findings as lines that editors read."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from tests.conftest import run_command

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "editors.md"


def test_each_finding_is_a_line_that_the_documented_matcher_reads(tmp_path: Path) -> None:
    project = tmp_path / "finetune"
    shutil.copytree(ROOT / "docs" / "tutorial" / "script", project)
    verb = ("check", ".", "--no-probe", "--format")
    lines = run_command(sys.executable, *verb, "concise", cwd=project).stdout.splitlines()
    findings = json.loads(run_command(sys.executable, *verb, "json", cwd=project).stdout)["findings"]

    task = json.loads(re.search(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1])
    pattern = re.compile(task["tasks"][0]["problemMatcher"]["pattern"]["regexp"])
    read = [match for match in map(pattern.match, lines) if match]
    assert [match[3] for match in read] == [finding["id"] for finding in findings]
    assert all((project / match[1]).is_file() and int(match[2]) >= 1 for match in read)
    assert lines[len(read) :] == ["compatcheck: 1 finding at or above affected"]
