"""What GitHub, GitLab and CI servers read: told back as they read it, and safe whatever the text holds."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.environment import Environment, Location
from compatcheck.report import FORMATS, render
from compatcheck.report.document import Exit
from compatcheck.report.formats import _markdown
from compatcheck.report.formats.findings.github import MOST_SHOWN, command
from compatcheck.report.subjects.check import document
from compatcheck.results.findings import Finding, ProbeResult, Remark, Remedy, Report, Step, Suppressed
from tests.conftest import run_command

HOSTILE = "100%, a|b `c` <script> [x](y) @all *z*\r\n::error::no \x1b[31m中文"
FINDING = Finding(
    "CC-2024-0001",
    "Attention breaks",
    "affected",
    "divergence",
    "reproduced",
    ("torch",),
    "It breaks.",
    (),
    (
        Remedy("pins", "fixed there", {"torch": ">=2.5.1"}, steps=(Step("pin", ("torch>=2.5.1",)),)),
        Remedy(
            "environ",
            "off",
            environ={"A": "1", "B": "2"},
            steps=(Step("export", ("export A=1",)), Step("export", ("export B=2",))),
        ),
        Remedy("code", "by hand", code="a(\n```\n)", steps=(Step("code", ("a(\n```\n)",)),)),
    ),
    ("https://example.org/1", "records/one.json"),
    location=Location("配置/train a.yaml", 14),
    mechanism="cuDNN assumes strides.",
)
CONFIRMED = FINDING._replace(
    status="confirmed", probe=ProbeResult("attention_masked", "fail", "theta is infinite in dq", {}, 1.5)
)
POSSIBLE = FINDING._replace(id="CC-2024-0002", status="possible", missing=("gpus", "gpus", "training.dtype"))
REFUTED = FINDING._replace(id="CC-2024-0003", status="refuted", location=None)
SPOILT = FINDING._replace(
    title=HOSTILE, summary=HOSTILE, mechanism=HOSTILE, remedies=(Remedy("code", HOSTILE, code=HOSTILE),)
)
ENVIRONMENT = Environment({"python": "3.11.7", "distributions": {"torch": "2.5.0"}})
CODE_QUALITY = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^[^/.]"},
                    "lines": {"required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    },
}
"""What https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format asks for."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def of(*findings: Finding, **more: Any) -> Report:
    return Report(ENVIRONMENT, findings, "abc", 3, "2026-11-21", **more)


def said(report: Report, form: str, **options: Any) -> str:
    return render(document(report, Exit("1 finding at or above affected"), **options), form)


def read_back(line: str) -> tuple[str, dict[str, str], str]:
    """A command as GitHub's runner reads it (actions/runner, src/Runner.Common/ActionCommand.cs)."""
    name, properties, message = re.fullmatch("::([a-z]+) ([^:]*)::(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    split = dict(each.split("=", 1) for each in properties.split(","))
    decode = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}

    def decoded(text: str, codes: tuple[str, ...]) -> str:
        for code in codes:
            text = text.replace(code, decode[code])
        return text

    everything = ("%0D", "%0A", "%3A", "%2C", "%25")
    return (
        name,
        {key: decoded(value, everything) for key, value in split.items()},
        decoded(message, ("%0D", "%0A", "%25")),
    )


@given(st.text(), st.text())
def test_what_the_runner_reads_is_what_was_said(title: str, message: str) -> None:
    line = command("error", title, message, None)
    assert "\n" not in line and "\r" not in line
    assert read_back(line) == ("error", {"title": title}, message)


def test_annotations_stand_on_the_line_of_the_configuration() -> None:
    confirmed, possible, verdict = said(of(CONFIRMED, POSSIBLE, REFUTED), "github").splitlines()
    name, properties, message = read_back(confirmed)
    assert name == "error"
    assert properties == {"file": "配置/train a.yaml", "line": "14", "title": "CC-2024-0001 Attention breaks"}
    assert "theta is infinite" in message and "fix: pin 'torch>=2.5.1'" in message.splitlines()
    assert read_back(possible)[0] == "notice" and "gpus, training.dtype" in read_back(possible)[2]
    assert verdict == "compatcheck: 1 finding at or above affected"


def test_a_finding_without_a_place_belongs_to_the_step() -> None:
    line = said(of(FINDING._replace(location=None)), "github").splitlines()[0]
    assert read_back(line)[1] == {"title": "CC-2024-0001 Attention breaks"}


def test_no_text_is_a_command_of_its_own() -> None:
    told = said(of(SPOILT, remarks=(Remark(HOSTILE, Location("a,b:c.toml", 2)),)), "github")
    assert len([line for line in told.splitlines() if line.lstrip().startswith("::")]) == 2
    assert "::warning file=a%2Cb%3Ac.toml,line=2,title=compatcheck::100%25, a|b" in told


def test_the_worst_come_first_and_what_github_hides_is_said() -> None:
    told = said(of(CONFIRMED, *(FINDING for _ in range(MOST_SHOWN))), "github").splitlines()
    assert "confirmed: " in told[0]
    assert f"{MOST_SHOWN + 1} annotations of the kind error; GitHub shows the first {MOST_SHOWN}" in told[-2]
    assert len(said(of(*(FINDING for _ in range(MOST_SHOWN))), "github").splitlines()) == MOST_SHOWN + 1


def test_code_quality_is_what_gitlab_takes() -> None:
    report = of(CONFIRMED, FINDING, POSSIBLE, REFUTED, FINDING._replace(location=None))
    shape = json.loads(said(report, "gitlab"))
    jsonschema.validate(shape, CODE_QUALITY)
    assert [each["severity"] for each in shape] == ["critical", "major", "minor", "major"]
    assert len({each["fingerprint"] for each in shape}) == len(shape), "GitLab wants each once"
    assert shape[0]["location"] == {"path": "配置/train a.yaml", "lines": {"begin": 14}}
    assert shape[3]["location"] == {"path": "requirements.txt", "lines": {"begin": 1}}
    assert json.loads(said(of(), "gitlab")) == []


def test_junit_fails_what_is_certain_and_skips_the_rest() -> None:
    aside = Suppressed(FINDING._replace(id="CC-2024-0009"), "ignore", "until May")
    top = ElementTree.fromstring(said(of(CONFIRMED, FINDING, POSSIBLE, REFUTED, suppressed=(aside,)), "junit"))
    (suite,) = top
    cases = list(suite)
    assert [[outcome.tag for outcome in case] for case in cases] == [["failure"], ["failure"], ["skipped"], ["skipped"]]
    assert cases[0].find("failure").get("type") == "confirmed"  # type: ignore[union-attr]
    assert cases[0].get("file") == "配置/train a.yaml" and cases[0].get("line") == "14"
    assert cases[3].find("skipped").get("message") == "ignore: until May"  # type: ignore[union-attr]
    for element in (top, suite):
        counts = [element.get(name) for name in ("tests", "failures", "skipped", "errors")]
        assert counts == ["4", "2", "2", "0"]


def test_junit_of_nothing_is_one_test_that_passed() -> None:
    (case,) = ElementTree.fromstring(said(of(), "junit")).findall("testsuite/testcase")
    assert case.get("name") == "no known fault in what was given" and not len(case)


def test_junit_is_xml_whatever_the_text_holds() -> None:
    (case,) = ElementTree.fromstring(said(of(SPOILT), "junit")).findall("testsuite/testcase")
    assert "<script>" in case.get("name", "") and "中文" in case.get("name", "") and "\x1b" not in case.get("name", "")


def test_the_summary_says_the_verdict_first_and_folds_the_rest() -> None:
    aside = Suppressed(FINDING._replace(id="CC-2024-0009"), "baseline", "known")
    report = of(CONFIRMED, FINDING, POSSIBLE, REFUTED, suppressed=(aside,), remarks=(Remark("an ignore has expired"),))
    page = said(report, "markdown")
    before, *folded = page.split("<details>")
    assert before.startswith("### compatcheck: :x: 1 confirmed, 1 affected, 1 possible, 1 refuted\n")
    rows = [row for row in before.splitlines() if row.startswith("| :x:")]
    assert len(rows) == 2 and all("`配置/train a.yaml:14`" in row and "`torch>=2.5.1`" in row for row in rows)
    assert "   ```text\n   torch>=2.5.1\n   ```" in folded[0]
    assert "   export A=1\n   export B=2\n" in folded[0]
    assert "   ````python\n   a(\n   ```\n   )\n   ````" in folded[0], "a fence that the code does not close"
    assert "<https://example.org/1>" in folded[0] and "cuDNN assumes strides." in folded[0]
    assert "theta is infinite" in folded[0] and "gpus" in page and "an ignore has expired" in page
    assert "CC-2024-0009" in page and "CC-2024-0003" not in page
    assert "CC-2024-0003" in said(report, "markdown", refuted=True)
    assert page.count("<details>") == page.count("</details>")


def test_the_summary_of_nothing_is_a_verdict() -> None:
    assert said(of(), "markdown").startswith("### compatcheck: :white_check_mark: no known fault in what was given\n")


def test_the_summary_shows_text_and_does_nothing_with_it() -> None:
    page = said(of(SPOILT._replace(location=Location("a|b `c`.yaml", 1))), "markdown")
    outside = re.sub(r"`+[^`]*`+", "", page)
    assert "<script>" not in re.sub(r"(?s)^ *(`{3,}).*?\n *\1$", "", outside, flags=re.MULTILINE)
    table = next(row for row in page.splitlines() if row.startswith("| :x:"))
    assert len(re.findall(r"(?<!\\)\|", table)) == 5
    assert "@all" not in outside.replace("@\u200ball", "")


@given(st.text(alphabet="ab`|\\ \n<", min_size=1).filter(str.strip))
def test_code_within_a_line_is_closed_by_its_own_fence(text: str) -> None:
    shown = _markdown.code(text)
    fence = re.match("`+", shown)[0]  # type: ignore[index]
    assert shown.endswith(fence) and "\n" not in shown
    assert fence not in re.findall("`+", shown[len(fence) : -len(fence)])


def test_one_run_is_written_in_every_format(tmp_path: Path) -> None:
    wanted = [f"--report={name}=report.{name}" for name in FORMATS]
    done = run_command(sys.executable, "demo", *wanted, cwd=tmp_path)
    assert done.returncode == 1 and "affected  CC-2024-0001" in done.stdout, done.stderr
    for name in FORMATS:
        assert "CC-2024-0001" in (tmp_path / f"report.{name}").read_text(encoding="utf-8")
    assert (tmp_path / "report.text").read_text(encoding="utf-8") == done.stdout


@pytest.mark.parametrize("value", ["sarif", "sarif=", "=x", "yaml=x"])
def test_a_report_that_names_no_format_or_file_is_refused(tmp_path: Path, value: str) -> None:
    done = run_command(sys.executable, "demo", "--report", value, cwd=tmp_path)
    assert done.returncode == 2 and "FORMAT=FILE" in done.stderr and "sarif" in done.stderr
    assert not list(tmp_path.iterdir())


def test_two_reports_in_one_file_are_refused(tmp_path: Path) -> None:
    for arguments in (("--report", "json=a", "-o", "./a"), ("--report", "json=a", "--report", "sarif=a")):
        done = run_command(sys.executable, "demo", *arguments, cwd=tmp_path)
        assert done.returncode == 2 and "two reports would be written to" in done.stderr
        assert not list(tmp_path.iterdir())
    ignored = ("--report", f"json={os.devnull}", "--report", f"github={os.devnull}", "--format", "github")
    done = run_command(sys.executable, "demo", *ignored, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout.endswith("compatcheck: 1 finding at or above affected\n")
