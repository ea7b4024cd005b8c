"""Only what is new against an earlier report fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compatcheck import settings
from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.report import render
from compatcheck.report.subjects.check import document
from compatcheck.results.findings import Finding, Report, Status
from tests.settings.conftest import AFFECTED, Run

Settle = Callable[..., None]
FILES = ("--no-probe", "requirements.txt", "train.yaml")
ASSUMED = tuple(part for fact in AFFECTED for part in ("--assume", fact))


@pytest.fixture
def baseline(run: Run, project: Path) -> Path:
    """A report of the project while it has its fault."""
    run("check", *FILES, *ASSUMED, "--format", "json", "-o", "base.json")
    return project / "base.json"


def test_what_an_earlier_report_knows_does_not_fail(run: Run, project: Path, baseline: Path, settle: Settle) -> None:
    known = run("check", *FILES, *ASSUMED, "--baseline", "base.json")
    assert known.returncode == 0 and "known in the baseline" in known.stdout
    settle('baseline = "base.json"')
    assert run("check", *FILES).returncode == 0
    (project / "requirements.txt").write_text("torch==2.5.0\npeft==0.10.0\ntransformers==5.0.0\n", encoding="utf-8")
    (project / "empty.json").write_text('{"schema_version": 1, "findings": []}', encoding="utf-8")
    assert run("check", *FILES, "--baseline", "empty.json").returncode == 1


def test_a_baseline_written_against_a_baseline_knows_the_same(run: Run, project: Path, baseline: Path) -> None:
    again = ("check", *FILES, *ASSUMED, "--baseline", "base.json", "--format", "json", "-o", "base.json")
    assert run(*again).returncode == 0
    shape = json.loads(baseline.read_text(encoding="utf-8"))
    assert not shape["findings"] and {row["by"] for row in shape["suppressed"]} == {"baseline"}
    assert run(*again).returncode == 0


def _report(*findings: Finding) -> Report:
    return Report(Environment({}), findings, "abc", 3)


FOUND = Finding(
    "CC-1", "t", "affected", "crash", "reported", ("torch",), "s", (), (), (), location=Location("a.yaml", 3)
)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    path = tmp_path / "base.json"
    path.write_text(render(document(_report(FOUND)), "json"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("before", "now", "is_new"),
    [
        ("possible", "affected", True),
        ("refuted", "possible", True),
        ("affected", "affected", False),
        ("affected", "confirmed", False),
        ("confirmed", "possible", False),
    ],
)
def test_a_finding_that_has_become_worse_is_new(earlier: Path, before: Status, now: Status, is_new: bool) -> None:
    earlier.write_text(render(document(_report(FOUND._replace(status=before))), "json"), encoding="utf-8")
    judged = settings.hold_against(_report(FOUND._replace(status=now)), str(earlier))
    assert bool(judged.findings) is is_new and bool(judged.suppressed) is not is_new


def test_the_line_does_not_count_and_the_file_does(earlier: Path) -> None:
    moved = FOUND._replace(location=Location("a.yaml", 30))
    assert not settings.hold_against(_report(moved), str(earlier)).findings
    elsewhere = FOUND._replace(location=Location("b.yaml", 3))
    assert settings.hold_against(_report(elsewhere), str(earlier)).findings


def test_a_file_is_known_by_whatever_name_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: Path
) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "configs").mkdir()
    (tmp_path / "link").symlink_to(repository)
    monkeypatch.chdir(repository)
    at = FOUND._replace(location=Location("configs/a.yaml", 3))
    earlier.write_text(render(document(_report(at)), "json"), encoding="utf-8")
    for folder, name in (
        (".", "./configs/a.yaml"),
        (".", str(repository / "configs" / "a.yaml")),
        (".", str(tmp_path / "link" / "configs" / "a.yaml")),
        ("configs", "a.yaml"),
    ):
        monkeypatch.chdir(repository / folder)
        named = _report(FOUND._replace(location=Location(name, 9)))
        assert settings.hold_against(named, str(earlier)).suppressed, name
    assert settings.hold_against(_report(FOUND._replace(location=Location("../a.yaml"))), str(earlier)).findings


def _without_fingerprints(shape: dict[str, Any]) -> str:
    for row in shape["findings"]:
        del row["fingerprint"]
    return json.dumps(shape)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda shape: "", "the file is empty"),
        (lambda shape: json.dumps(shape)[:-2], "the text is not JSON and appears truncated"),
        (lambda shape: "findings: 3", "line 1: the text is not JSON"),
        (lambda shape: json.dumps({**shape, "schema_version": 2}), "the schema_version is 2"),
        (lambda shape: json.dumps(shape["environment"]), "the file is not a compatcheck report"),
        (lambda shape: json.dumps([shape]), "the file is not a compatcheck report"),
        (lambda shape: json.dumps({**shape, "findings": {}}), "the file is not a compatcheck report"),
        (lambda shape: "[" * 200_000, "the content is nested too deeply"),
        (_without_fingerprints, "has no fingerprint"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(
    earlier: Path, change: Callable[[dict[str, Any]], str], seen: str
) -> None:
    earlier.write_text(change(json.loads(earlier.read_text(encoding="utf-8"))), encoding="utf-8")
    with pytest.raises(InputError, match="base.json") as raised:
        settings.hold_against(_report(FOUND), str(earlier))
    assert seen in str(raised.value)


def test_a_baseline_that_is_not_there_is_told(run: Run, project: Path) -> None:
    done = run("check", *FILES, "--baseline", "nope.json")
    assert done.returncode == 2 and "nope.json: there is no such file" in done.stderr
