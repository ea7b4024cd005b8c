"""SARIF of real findings: valid, taken by GitHub, and with places that a code host can show."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest

from compatcheck import matrix
from compatcheck.environment import Location
from compatcheck.environment.snapshot import read_snapshot
from compatcheck.pipelines.check import check
from compatcheck.report import render
from compatcheck.report.document import Exit
from compatcheck.report.subjects.check import document
from compatcheck.results.findings import Finding, ProbeResult, Remark, Report, Suppressed, fingerprint
from tests.conftest import ROOT, run_command
from tests.report.sarif_rules import RULES

PROBE = ProbeResult("attention_masked", "fail", "theta is infinite in dq", {"theta": float("inf")}, 1.5)
SHOWN_OF_A_DESCRIPTION = 1024
posix = pytest.mark.skipif(os.name == "nt", reason="names of files and links are those of POSIX")


@pytest.fixture(scope="module")
def demo() -> Report:
    return check(read_snapshot(str(ROOT / "compatcheck" / "demo" / "glm-4.json")), matrix.load(str(ROOT / "matrix")))


@pytest.fixture
def finding(demo: Report) -> Finding:
    return demo.findings[0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, which is the current folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_of(text: str) -> dict[str, Any]:
    """The one run of a log that keeps the rules, with what no schema can say."""
    log = json.loads(text)
    jsonschema.Draft202012Validator(RULES, format_checker=jsonschema.FormatChecker()).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert (result["kind"] == "fail") != (result["level"] == "none")
        artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert artifact["uri"].isascii() and not set(artifact["uri"]) & set(' "<>\\^`{|}')
        assert artifact.get("uriBaseId", "%SRCROOT%") in run["originalUriBaseIds"]
        assert ("uriBaseId" in artifact) != artifact["uri"].startswith("file:///")
    for rule in rules:
        for name in ("shortDescription", "fullDescription"):
            assert 0 < len(rule[name]["text"]) <= SHOWN_OF_A_DESCRIPTION
        assert len(rule["properties"]["tags"]) <= 20
    return dict(run)


def sarif(report: Report, **options: Any) -> dict[str, Any]:
    exit = Exit("said so", options.pop("exit_status", None))
    return run_of(render(document(report, exit, **options), "sarif"))


def uris(run: dict[str, Any]) -> list[str]:
    return [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]


def at(report: Report, *places: Location | None) -> Report:
    return report._replace(findings=tuple(report.findings[0]._replace(location=place) for place in places))


def test_every_entry_makes_a_rule_and_a_result(demo: Report) -> None:
    """What the whole matrix says, as findings: the texts of people in every place where SARIF holds text."""
    findings = tuple(
        demo.findings[0]._replace(
            id=entry["id"],
            title=entry["title"],
            summary=entry["summary"],
            mechanism=entry["mechanism"],
            evidence=tuple(evidence["url"] for evidence in entry["evidence"]),
        )
        for entry in matrix.all_entries(matrix.load(str(ROOT / "matrix")))
    )
    run = sarif(demo._replace(findings=findings))
    assert len(run["results"]) == len(run["tool"]["driver"]["rules"]) == len(findings) > 200


def test_the_rule_helps_where_nobody_can_run_explain(demo: Report, finding: Finding) -> None:
    (rule,) = sarif(demo)["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == finding.title
    assert rule["fullDescription"]["text"] == finding.summary
    long = demo._replace(findings=(finding._replace(summary="It breaks. " * 200),))
    assert len(sarif(long)["tool"]["driver"]["rules"][0]["fullDescription"]["text"]) == SHOWN_OF_A_DESCRIPTION
    for help_ in rule["help"].values():
        assert "cuDNN 9.1.0" in help_ and "torch>=2.5.1" in help_, "the mechanism and the fix"
        assert all(address in help_ for address in finding.evidence)
    assert rule["helpUri"] in finding.evidence
    assert {"divergence", "torch"} <= set(rule["properties"]["tags"])
    assert "security-severity" not in rule["properties"]


def test_the_tool_says_which_matrix_has_judged(demo: Report) -> None:
    run = sarif(demo)
    assert run["tool"]["driver"]["properties"]["matrixRevision"] == demo.matrix_revision
    assert run["invocations"] == [{"executionSuccessful": True, "exitCodeDescription": "said so"}]
    assert run["columnKind"] == "utf16CodeUnits"


@pytest.mark.parametrize(("status", "done"), [(0, True), (1, True), (4, False)])
def test_a_run_that_could_not_decide_is_no_success(demo: Report, status: int, done: bool) -> None:
    (invocation,) = sarif(demo, exit_status=status)["invocations"]
    assert invocation["exitCode"] == status and invocation["executionSuccessful"] is done


def test_levels_follow_the_status(demo: Report, finding: Finding) -> None:
    found = (
        finding._replace(status="confirmed", probe=PROBE),
        finding,
        finding._replace(status="possible", missing=("gpu.compute_capability",)),
        finding._replace(status="refuted", probe=PROBE._replace(outcome="pass")),
    )
    run = sarif(demo._replace(findings=found), refuted=True)
    assert [each["level"] for each in run["results"]] == ["error", "error", "note", "none"]
    assert [each["kind"] for each in run["results"]] == ["fail", "fail", "fail", "pass"]
    texts = [each["message"]["text"] for each in run["results"]]
    assert texts[0].startswith(f"{finding.title}. ") and "theta is infinite" in texts[0]
    assert "gpu.compute_capability" in texts[2]
    assert len(sarif(demo._replace(findings=found))["results"]) == 3, "what was refuted is shown on request"


def test_nothing_found_is_an_empty_run(demo: Report) -> None:
    run = sarif(demo._replace(findings=()))
    assert run["results"] == [] == run["tool"]["driver"]["rules"]


def test_a_project_s_files_are_the_places(folder: Path) -> None:
    """The command as people type it, from a folder below the repository's top, on names that need escapes."""
    project = folder / "sub dir"
    (project / "模型").mkdir(parents=True)
    (project / "模型" / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    (project / "train 100%.sh").write_text(
        "python train.py --model_name_or_path 模型 --per_device_train_batch_size 2 \\\n"
        "  --gradient_accumulation_steps 4 --output_dir out\n",
        encoding="utf-8",
    )
    (project / "requirements.txt").write_text("transformers==4.48.0\ntorch==2.5.0\ndeepspeed==0.16.0\n")
    done = run_command(sys.executable, ".", "--no-probe", "--format", "sarif", "-o", "out.sarif", cwd=project)
    assert done.returncode == 1, done.stderr
    run = run_of((project / "out.sarif").read_text(encoding="utf-8"))
    assert run["invocations"][0]["exitCode"] == 1
    placed = {each["ruleId"]: each["locations"][0] for each in run["results"]}
    stated = placed["CC-2024-0040"]["physicalLocation"]
    assert stated["artifactLocation"] == {"uri": "sub%20dir/train%20100%25.sh", "uriBaseId": "%SRCROOT%"}
    assert stated["region"] == {"startLine": 2}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{Path(os.path.realpath(folder)).as_uri()}/"
    assert all((folder / unquote(uri)).is_file() for uri in uris(run))


@posix
@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("configs/a b.yaml", "configs/a%20b.yaml"),
        ("配置/训练.yaml", "%E9%85%8D%E7%BD%AE/%E8%AE%AD%E7%BB%83.yaml"),
        ("configs\\train.yaml", "configs/train.yaml"),
        ("./configs/../a#b?.yaml", "a%23b%3F.yaml"),
        ("a:b.yaml", "a%3Ab.yaml"),
        ("/elsewhere/über.yaml", "file:///elsewhere/%C3%BCber.yaml"),
        ("C:\\runs\\a b.yaml", "file:///C:/runs/a%20b.yaml"),
    ],
)
def test_names_of_files_become_addresses(demo: Report, file: str, uri: str) -> None:
    assert uris(sarif(at(demo, Location(file, 3)))) == [uri]


@posix
def test_a_name_that_is_not_utf_8_becomes_an_address(demo: Report) -> None:
    assert uris(sarif(at(demo, Location(os.fsdecode(b"caf\xe9.yaml"))))) == ["caf%E9.yaml"]


@posix
def test_links_are_resolved_and_a_model_folder_is_its_config(demo: Report, folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "config.json").write_text("{}")
    (folder / "link").symlink_to("real")
    assert uris(sarif(at(demo, Location("link"), Location("link/config.json", 1)))) == ["real/config.json"] * 2


@posix
def test_a_link_out_of_the_repository_is_named_by_its_own_place(
    demo: Report, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "train.yaml"
    outside.write_text("")
    (folder / "train.yaml").symlink_to(outside)
    assert uris(sarif(at(demo, Location("train.yaml", 1)))) == ["train.yaml"]


def test_without_a_place_the_file_that_pins_versions_is_named(demo: Report, folder: Path) -> None:
    def placed(report: Report) -> tuple[str, bool]:
        (location,) = sarif(report)["results"][0]["locations"]
        assert "region" not in location["physicalLocation"]
        return location["physicalLocation"]["artifactLocation"]["uri"], "message" in location

    assert placed(demo) == ("requirements.txt", True)
    (folder / "uv.lock").write_text("")
    assert placed(demo) == ("uv.lock", True)
    (folder / "pyproject.toml").write_text("")
    assert placed(demo) == ("pyproject.toml", True)
    read = demo.environment._replace(locations={"distributions.peft": Location("reqs/train.txt", 4)})
    assert placed(demo._replace(environment=read)) == ("reqs/train.txt", True)


def test_what_was_set_aside_is_suppressed_and_says_why(demo: Report, finding: Finding) -> None:
    aside = (
        Suppressed(finding._replace(id="CC-2024-0002"), "ignore", "no cuDNN here"),
        Suppressed(finding._replace(id="CC-2024-0003"), "baseline", "known since May"),
    )
    first, ignored, known = sarif(demo._replace(suppressed=aside))["results"]
    assert "suppressions" not in first and first["baselineState"] == "new"
    assert ignored["suppressions"][0]["justification"] == "no cuDNN here" and ignored["baselineState"] == "new"
    assert known["suppressions"][0]["justification"] == "known since May" and known["baselineState"] == "unchanged"
    without = sarif(demo._replace(suppressed=aside[:1]))["results"]
    assert not any("baselineState" in each for each in without), "nothing was compared"


def test_remarks_are_about_the_tool_s_settings(demo: Report) -> None:
    remarks = (Remark("an ignore has expired", Location("pyproject.toml", 7)), Remark("another remark"))
    placed, bare = sarif(demo._replace(remarks=remarks))["invocations"][0]["toolConfigurationNotifications"]
    assert placed["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}
    assert bare == {"level": "warning", "message": {"text": "another remark"}}


def test_fingerprints_outlive_the_line_and_the_status(demo: Report, finding: Finding) -> None:
    def marks(report: Report) -> list[dict[str, str]]:
        return [each["partialFingerprints"] for each in sarif(report)["results"]]

    before, after = marks(at(demo, Location("a.yaml", 3))), marks(at(demo, Location("a.yaml", 9)))
    assert before == after == [{"compatcheck/v1": fingerprint(finding._replace(location=Location("a.yaml")))}]
    assert marks(at(demo, Location("b.yaml", 3))) != before
    twice = marks(at(demo, None, None))
    assert twice[0]["compatcheck/v1"] == twice[1]["compatcheck/v1"]
    assert twice[0]["primaryLocationLineHash"] != twice[1]["primaryLocationLineHash"]
