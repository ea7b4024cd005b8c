"""What the formats say of the same findings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.advice.edits import setting
from compatcheck.environment import Environment, Location, Unknown
from compatcheck.environment.snapshot import load_snapshot, read_snapshot
from compatcheck.pipelines.check import check
from compatcheck.probes import card, describe, names
from compatcheck.project.reading import read_paths
from compatcheck.report import FORMATS
from compatcheck.report import render as render_document
from compatcheck.report.document import Exit
from compatcheck.report.steps import lead, step_text, to_copy
from compatcheck.report.subjects import check as verdict
from compatcheck.report.subjects import explanation, probes
from compatcheck.results.findings import Finding, ProbeResult, Remark, Remedy, Report, Status, Step
from compatcheck.terminal.cells import cells
from compatcheck.terminal.screen import PLAIN, Screen


def render(report: Report, form: str, *, exit_reason: str, screen: Screen = PLAIN, **options: bool) -> str:
    return render_document(verdict.document(report, Exit(exit_reason), **options), form, screen)


def failing(*statuses: Status) -> str:
    return render_document(verdict.failing(REPORT, statuses), "text")


ROOT = Path(__file__).parents[2]
PROBE = ProbeResult("attention_masked", "fail", "theta is infinite in dq", {"theta": float("inf")}, 1.5)
FINDINGS = (
    Finding(
        "CC-2024-0001",
        "Attention breaks",
        "confirmed",
        "divergence",
        "corroborated",
        ("torch",),
        "It breaks. " * 30,
        (),
        (Remedy("pins", "fixed there", {"torch": ">=2.5.1"}, steps=(Step("pin", ("torch>=2.5.1",)),)),),
        ("https://example.org/1",),
        "attention_masked",
        {},
        PROBE,
        Location("ds_config.json", 14),
    ),
    Finding("CC-2024-0002", "中文标题", "possible", "hang", "reported", ("peft",), "x", ("gpus",), (), ()),
    Finding("CC-2024-0003", "Refuted here", "refuted", "slow", "reported", ("peft",), "x", (), (), (), probe=PROBE),
)
REPORT = Report(
    Environment({"python": "3.11.7", "distributions": {"torch": "2.5.0"}}), FINDINGS, "abc", 3, "2026-11-21"
)


def test_an_entry_that_applies_in_several_files_is_told_once_and_names_each() -> None:
    first = FINDINGS[0]._replace(probe=None, summary="It breaks here.")
    again = first._replace(location=Location("other.json", 2))
    differs = first._replace(location=Location("other.json", 2), summary="It breaks elsewhere.")
    told = render(REPORT._replace(findings=(first, again, differs)), "text", exit_reason="")
    assert told.count("ds_config.json:14") == 1 and told.count("other.json:2") == 1
    assert told.count("It breaks here.") == 1 and "It breaks elsewhere." in told
    assert told.count("pin 'torch>=2.5.1'") == 2


def test_json_has_the_shape_that_scripts_rely_on() -> None:
    shape = json.loads(render(REPORT, "json", exit_reason="1 findings"))
    keys = "schema_version matrix environment inferred areas findings suppressed remarks exit_reason"
    assert list(shape) == keys.split()
    assert shape["schema_version"] == 1
    assert shape["matrix"] == {"revision": "abc", "entries": 3, "date": "2026-11-21", "stale": False}
    finding = shape["findings"][0]
    expected = "id fingerprint title status impact confidence packages summary because missing remedies evidence probe"
    assert set(finding) == {*expected.split(), "location"}
    assert finding["location"] == {"file": "ds_config.json", "line": 14}
    assert finding["probe"]["measured"] == {"theta": "inf"}
    assert finding["remedies"][0]["pins"] == {"torch": ">=2.5.1"}


def test_the_environment_in_json_is_a_snapshot(tmp_path: Path) -> None:
    shape = json.loads(render(REPORT, "json", exit_reason=""))
    assert load_snapshot(json.dumps(shape["environment"]), "report") == REPORT.environment


def test_text_says_the_verdict_the_place_and_the_way_out() -> None:
    text = render(REPORT, "text", exit_reason="")
    assert "confirmed CC-2024-0001  Attention breaks" in text
    assert "ds_config.json:14" in text
    assert "fix    pin 'torch>=2.5.1'" in text
    assert "probe  attention_masked: fail, theta is infinite in dq" in text
    assert "missing: gpus" in text and "中文标题" in text
    assert "Refuted here" not in text
    assert "1 confirmed, 1 possible, 1 refuted" in text
    assert max(map(len, text.splitlines())) <= 110


def test_a_fault_of_the_machine_is_told_where_facts_are_missing_for_a_verdict() -> None:
    finding = FINDINGS[0]._replace(status="possible", missing=("training.deepspeed",), probe=PROBE)
    text = render(REPORT._replace(findings=(finding,)), "text", exit_reason="")
    assert "no known fault" not in text
    assert "a probe found a fault on this machine that may affect your run" in text
    assert "next: --assume training.deepspeed=VALUE (absent if there is none)" in text


def test_what_was_refuted_is_shown_on_request() -> None:
    assert "Refuted here" in render(REPORT, "text", exit_reason="", refuted=True)


def test_colour_and_links_change_nothing_but_colour_and_links() -> None:
    drawn = render(REPORT, "text", exit_reason="", screen=Screen(colour=True, links=True))
    assert "\x1b[" in drawn and "\x1b]8;;https://example.org/1\x1b\\CC-2024-0001\x1b]8;;\x1b\\" in drawn
    assert re.search(r"\x1b]8;;file://[^/]*/.*/ds_config.json\x1b", drawn)
    assert undrawn(drawn) == render(REPORT, "text", exit_reason="").splitlines()


def undrawn(text: str) -> list[str]:
    """The rows without what colours and links them."""
    return [row.rstrip() for row in re.sub(r"\x1b\[[0-9;]*m|\x1b]8;;.*?\x1b\\", "", text).splitlines()]


def test_on_a_terminal_the_verdict_is_seen_from_both_ends() -> None:
    rows = render(REPORT, "text", exit_reason="", screen=Screen(80, is_terminal=True)).splitlines()
    assert rows[0] == rows[-2] == "1 confirmed, 1 possible, 1 refuted"
    assert rows[-1] == "next: compatcheck explain CC-2024-0001"
    aside = REPORT._replace(remarks=(Remark("an ignore has expired"),))
    rows = render(aside, "text", exit_reason="", screen=Screen(80, is_terminal=True)).splitlines()
    assert rows[-2] == "1 confirmed, 1 possible, 1 refuted" and any("has expired" in row for row in rows)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_row_is_wider_than_the_terminal(width: int, verbose: bool) -> None:
    chinese = FINDINGS[1]._replace(title="梯度累积的标签被掩码，" * 9)
    drawn = Screen(width, is_terminal=True, colour=True, links=True)
    report = REPORT._replace(findings=(FINDINGS[0], chinese, FINDINGS[2]))
    rows = undrawn(render(report, "text", exit_reason="", screen=drawn, verbose=verbose))
    assert [row for row in rows if cells(row) > width] == []


def test_verbose_adds_evidence_what_was_refuted_and_every_open_fact() -> None:
    reasons = {f"training.{number}": f"reason {number}" for number in range(12)}
    report = REPORT._replace(environment=REPORT.environment._replace(reasons=reasons))
    usual, verbose = (render(report, "text", exit_reason="", verbose=verbose) for verbose in (False, True))
    assert "reason 11" not in usual and "see them with --verbose" in usual and "https://example.org/1" not in usual
    assert all(f"training.{number} (reason {number})\n" in verbose for number in range(12))
    assert "see    https://example.org/1" in verbose and "Refuted here" in verbose


def test_a_reason_for_many_facts_is_cut_unless_verbose() -> None:
    reasons = dict.fromkeys((f"training.{number}" for number in range(9)), "two files differ")
    report = REPORT._replace(environment=REPORT.environment._replace(reasons=reasons))
    usual, verbose = (render(report, "text", exit_reason="", verbose=verbose) for verbose in (False, True))
    assert "training.3, 5 more (two files differ)" in " ".join(usual.split()) and "training.8" not in usual
    assert "training.8 (two files differ)" in " ".join(verbose.split())


def test_failing_findings_are_a_row_each_that_editors_can_follow() -> None:
    text = failing("confirmed", "affected")
    assert text == "ds_config.json:14: confirmed CC-2024-0001 Attention breaks\n"
    assert failing("confirmed", "possible").splitlines()[1] == "possible CC-2024-0002 中文标题"
    assert failing() == ""


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format_ends_in_a_newline(format_name: str) -> None:
    assert render(REPORT, format_name, exit_reason="").endswith("\n")


def test_probes_run_by_hand_are_listed() -> None:
    line, summary, advice = render_document(probes.document([PROBE]), "text").splitlines()
    assert advice.startswith("next: compatcheck explain attention_masked")
    assert line == "fail    attention_masked    1.5 s  theta is infinite in dq"
    assert summary == "1 fail; 1.5 s in total (nothing measured now)"
    assert json.loads(render_document(probes.document([PROBE]), "json"))["probes"][0]["outcome"] == "fail"


@pytest.mark.parametrize("width", [48, 72])
def test_probes_are_folded_to_the_terminal(width: int) -> None:
    drawn = Screen(width, is_terminal=True, colour=True)
    listed = render_document(probes.document_of_cards([card(name) for name in names()]), "text", drawn)
    shown = render_document(probes.document([PROBE._replace(why="it errs by much " * 20)]), "text", drawn)
    for text in (listed, shown):
        assert max(map(len, undrawn(text))) <= width


@pytest.mark.parametrize("name", names())
def test_every_probe_explains_itself_on_a_page(name: str) -> None:
    page = render_document(explanation.document_of_probe(name, describe(name)), "text")
    assert page.startswith(f"{name}  {describe(name)[0]}\n\n") and "Request:" in page
    assert max(map(len, page.splitlines()[1:])) <= 88


def entries() -> list[dict[str, Any]]:
    return matrix.all_entries(matrix.load(str(ROOT / "matrix")))


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry["id"])
def test_every_entry_explains_itself_on_a_page(entry: dict[str, Any]) -> None:
    page = render_document(explanation.document(entry), "text")
    for heading in ("What you see", "Why", "Applies when", "What to do", "Evidence"):
        assert heading in page
    for advice in entry.get("misleading", ()):
        assert " ".join(advice.split()[:6]) in page
    assert all(evidence["url"] in page for evidence in entry["evidence"])


@pytest.mark.parametrize(
    ("path", "value", "file", "expected"),
    [
        (
            "training.deepspeed.overlap_comm",
            False,
            "ds_z2.json",
            'in ds_z2.json set "zero_optimization": {"overlap_comm": false}',
        ),
        (
            "training.deepspeed.overlap_comm",
            False,
            None,
            'in the DeepSpeed JSON set "zero_optimization": {"overlap_comm": false}',
        ),
        ("training.attention", "eager", None, "set from_pretrained(..., attn_implementation='eager')"),
        (
            "training.gradient_accumulation_steps",
            1,
            "ds_z2.json",
            'in ds_z2.json set "gradient_accumulation_steps": 1',
        ),
        ("training.gradient_accumulation_steps", 1, "a.yaml", "in a.yaml set gradient_accumulation_steps to 1"),
        (
            "training.gradient_accumulation_steps",
            1,
            None,
            "set TrainingArguments(..., gradient_accumulation_steps=1)",
        ),
        ("training.dtype", "bfloat16", None, "set TrainingArguments(..., bf16=True, fp16=False)"),
    ],
)
def test_a_setting_is_spelled_as_its_file_spells_it(path: str, value: object, file: str | None, expected: str) -> None:
    step = setting(path, value, Environment({}, {}, {path: Location(file, 9)} if file else {}))
    assert step_text(step) == expected
    assert expected == f"{lead(step)} {to_copy(step)}"


def test_the_demo_is_the_glm_4_case() -> None:
    known = matrix.load(str(ROOT / "matrix"))
    report = check(read_snapshot(str(ROOT / "compatcheck" / "demo" / "glm-4.json")), known)
    assert [(f.id, f.status) for f in report.findings] == [("CC-2024-0001", "affected")]


SETTINGS = sorted(
    {
        (path, value)
        for entry in entries()
        for remedy in entry["remedies"]
        for path, value in remedy.get("config", {}).items()
        if path.startswith("training.deepspeed.")
    },
    key=str,
)


@pytest.mark.parametrize(("path", "value"), SETTINGS, ids=str)
def test_what_is_to_be_set_in_a_deepspeed_file_is_read_there_as_it_was_meant(
    tmp_path: Path, path: str, value: Any
) -> None:
    file = tmp_path / "ds_config.json"
    before: dict[str, Any] = {
        "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
        "compile": {"deepcompile": True},
    }
    for section, given in json.loads(f"{{{to_copy(setting(path, value, Environment({})))}}}").items():
        before[section] = {**before.get(section, {}), **given} if isinstance(given, dict) else given
    file.write_text(json.dumps(before), encoding="utf-8")
    read = read_paths([str(file)]).environment.get(path)
    assert isinstance(read, Unknown) if value == "none" else read == value
