"""Findings that a project has suppressed, and the ignores that want a look."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from compatcheck import settings
from compatcheck.environment import Environment, Location
from compatcheck.results.findings import Finding, Report
from compatcheck.settings import Ignore, Settings
from compatcheck.settings._ignores import any_matches
from tests.settings.conftest import IGNORE, Run

Settle = Callable[..., None]
FILES = ("--no-probe", "requirements.txt", "train.yaml")


def finding(entry: str, location: Location | None = None) -> Finding:
    return Finding(entry, "t", "affected", "crash", "reported", ("torch",), "s", (), (), (), location=location)


def report(*findings: Finding) -> Report:
    return Report(Environment({}), findings, "abc", 3)


def test_an_ignored_finding_does_not_fail_and_is_still_told(run: Run, project: Path, settle: Settle) -> None:
    settle()
    assert run("check", *FILES).returncode == 1
    settle(IGNORE)
    text = run("check", *FILES)
    assert text.returncode == 0 and "suppressed: 1 ignored" in text.stdout and "note" not in text.stdout
    shape = json.loads(run("check", *FILES, "--format", "json").stdout)
    assert [row["by"] for row in shape["suppressed"]] == ["ignore"]
    assert shape["suppressed"][0]["finding"]["id"] == "CC-2024-0001"
    assert shape["suppressed"][0]["why"] == "batch size is 1 (until 2999-01-31)"
    assert "CC-2024-0001" not in [row["id"] for row in shape["findings"]]


def test_an_expired_ignore_sets_nothing_aside_and_says_so(run: Run, project: Path, settle: Settle) -> None:
    settle(IGNORE.replace("2999-01-31", "2026-01-31"))
    done = run("check", *FILES)
    assert done.returncode == 1 and "affected  CC-2024-0001" in done.stdout
    assert "pyproject.toml:3: the ignore of CC-2024-0001 ended on 2026-01-31: batch size is 1" in done.stdout


def test_an_ignore_counts_on_its_last_day() -> None:
    project = Settings("pyproject.toml", ignores=(Ignore("CC-1", "x", date(2026, 5, 1)),))
    assert settings.set_aside(report(finding("CC-1")), project, date(2026, 5, 1)).suppressed
    after = settings.set_aside(report(finding("CC-1")), project, date(2026, 5, 2))
    assert after.findings and not after.suppressed and len(after.remarks) == 1


def test_an_ignore_that_nothing_needs_is_told_with_the_command_that_removes_it(
    run: Run, project: Path, settle: Settle
) -> None:
    settle(IGNORE)
    (project / "requirements.txt").write_text("torch==2.5.1\n", encoding="utf-8")
    done = run("check", *FILES)
    assert done.returncode == 0
    assert "pyproject.toml:3: the ignore of CC-2024-0001 is no longer needed here" in " ".join(done.stdout.split())
    assert "compatcheck ignore CC-2024-0001 --remove" in " ".join(done.stdout.split())


def test_where_facts_are_missing_no_ignore_is_called_unneeded(run: Run, project: Path, settle: Settle) -> None:
    settle(IGNORE, assume=False)
    (project / "ds.json").write_text('{"zero_optimization": {"stage": 3}}', encoding="utf-8")
    (project / "requirements.txt").write_text("deepspeed==0.16.4\n", encoding="utf-8")
    assert "note" not in run("check", "--no-probe", "requirements.txt", "ds.json").stdout


def test_an_ignore_of_some_paths_speaks_of_these_only() -> None:
    project = Settings("pyproject.toml", ignores=(Ignore("CC-1", "x", date.max, ("configs/*.yaml",)),))
    places = {"configs/a.yaml": True, "configs/deep/a.yaml": False, "a.yaml": False}
    for file, set_aside in places.items():
        done = settings.set_aside(report(finding("CC-1", Location(file, 3))), project)
        assert bool(done.suppressed) is set_aside, file
    assert not settings.set_aside(report(finding("CC-1")), project).suppressed


def test_an_ignore_of_paths_that_were_not_read_is_not_called_unneeded() -> None:
    project = Settings("pyproject.toml", ignores=(Ignore("CC-1", "x", date.max, ("configs/",)),))

    def remarks(file: str) -> int:
        read = Environment({}, locations={"training": Location(file, 1)})
        judged = report(finding("CC-2"))._replace(environment=read)
        return len(settings.unused(judged, project, lambda ids: dict.fromkeys(ids, True)).remarks)

    assert remarks("configs/a.yaml") == 1 and remarks("other/a.yaml") == 0


def test_a_refuted_finding_stays_where_it_is() -> None:
    project = Settings("pyproject.toml", ignores=(Ignore("CC-1", "x", date.max),))
    done = settings.set_aside(report(finding("CC-1")._replace(status="refuted")), project)
    assert done.findings and not done.suppressed
    assert not settings.unused(done, project, lambda ids: dict.fromkeys(ids, True)).remarks


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("train.yaml", "train.yaml", True),
        ("train.yaml", "trainxyaml", False),
        ("*.yaml", "configs/train.yaml", False),
        ("**/*.yaml", "configs/deep/train.yaml", True),
        ("**/*.yaml", "train.yaml", True),
        ("configs", "configs/deep/train.yaml", True),
        ("./configs/", "configs/train.yaml", True),
        ("configs/**", "configs/deep/train.yaml", True),
        ("conf", "configs/train.yaml", False),
        ("configs\\*.yaml", "configs/train.yaml", True),
        ("run?.yaml", "run1.yaml", True),
        ("../other/*.yaml", "../other/a.yaml", True),
    ],
)
def test_patterns_of_paths(pattern: str, path: str, fits: bool) -> None:
    assert any_matches([pattern], path) is fits
