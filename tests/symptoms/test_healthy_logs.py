"""Logs of healthy runs that look sick: rewards that are all equal, a warm-up from zero, a run that is resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from compatcheck.cli import cli

LOGS = sorted((Path(__file__).parent / "logs" / "healthy").glob("*.log"))


def test_thirty_healthy_logs_are_kept() -> None:
    assert len(LOGS) >= 30


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_healthy_log_is_explained_by_no_entry(log: Path) -> None:
    shown = CliRunner().invoke(cli, ["diagnose", str(log), "--format", "json"], prog_name="compatcheck")
    told = json.loads(shown.stdout)
    assert told["run"]["benign"] is True, told["run"]
    assert not [each for each in told["explanations"] if each["band"] != "long shot"]
    assert shown.exit_code == 0
