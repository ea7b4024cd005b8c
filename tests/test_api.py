"""What scripts and notebooks call: the same verdicts as the commands, as values."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import compatcheck
from tests.conftest import ROOT, run_command

MACHINES = ROOT / "tests" / "machines"
DEMO: dict[str, Any] = json.loads((ROOT / "compatcheck" / "demo" / "glm-4.json").read_text(encoding="utf-8"))
PADDED = {"training.attention": "sdpa", "training.per_device_train_batch_size": 2, "training.dtype": "bfloat16"}


def test_a_snapshot_is_judged_as_by_the_command() -> None:
    verdict = compatcheck.check(snapshot=DEMO)
    assert not verdict.ok
    assert [(finding.id, finding.status) for finding in verdict.findings] == [("CC-2024-0001", "affected")]
    assert verdict.findings[0].remedies[0].pins == {"torch": ">=2.5.1"}
    assert "Masked attention gives NaN" in str(verdict) and repr(verdict) == str(verdict)
    assert json.loads(verdict.to("json"))["findings"][0]["id"] == "CC-2024-0001"
    command = [sys.executable, "-m", "compatcheck", "demo"]
    assert (
        str(verdict).splitlines()[1:]
        == subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()[1:]
    )


def test_a_notebook_shows_the_report_as_an_element_of_its_own() -> None:
    verdict = compatcheck.check(snapshot=DEMO)
    shown = verdict._repr_html_()
    assert shown.startswith('<div class="compatcheck"><style>') and "<script" not in shown
    assert "1 known fault" in shown and "torch&gt;=2.5.1" in shown and "recommended versions" in shown
    assert verdict.to("html").startswith("<!DOCTYPE html>")


def test_a_snapshot_may_be_a_file_and_facts_may_be_stated(tmp_path: Path) -> None:
    healthy = compatcheck.check(snapshot=MACHINES / "glm-4-batch-1-torch-2.5.0.json")
    assert healthy.ok
    stated = compatcheck.check(
        snapshot=MACHINES / "glm-4-batch-1-torch-2.5.0.json", assume={"training.per_device_train_batch_size": 2}
    )
    assert not stated.ok
    assert compatcheck.check(snapshot=DEMO, ignore=["CC-2024-0001"]).findings == ()
    assert compatcheck.check(snapshot=DEMO, assume={"distributions.torch": None}).ok


OLD = "torch==2.5.0\ntransformers==4.48.0\ndeepspeed==0.14.0\nnumpy==2.1.0\n"
IGNORED = '[[tool.compatcheck.ignore]]\nid = "CC-2024-0027"\nreason = "x"\nuntil = 2999-01-01\n'
SCRIPT = (ROOT / "docs" / "tutorial" / "project" / "train.sh").read_text(encoding="utf-8")
FOLDERS: dict[str, dict[str, str]] = {
    "requirements": {"requirements.txt": OLD},
    "script": {"requirements.txt": OLD, "train.sh": SCRIPT},
    "settings": {"requirements.txt": OLD, "pyproject.toml": IGNORED},
    "assumed": {
        "requirements.txt": OLD,
        "train.sh": SCRIPT,
        "pyproject.toml": '[tool.compatcheck]\nassume = ["gpu.compute_capability=8.0", "cuda.runtime=12.4"]\n',
    },
    "several": {"a/requirements.txt": OLD, "a/train.sh": SCRIPT, "b/requirements.txt": "torch==2.6.0\n"},
    "nothing wrong": {"requirements.txt": "torch==2.6.0\n"},
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_judged_as_by_the_command(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same findings, exit status and reason, and never the interpreter in which the caller runs."""
    for file, text in FOLDERS[name].items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    done = run_command(sys.executable, "check", ".", "--format", "json", cwd=tmp_path)
    monkeypatch.chdir(tmp_path)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    verdict = compatcheck.check(".")
    told, said = json.loads(done.stdout), json.loads(verdict.to("json"))
    assert _found(said) == _found(told) and (verdict.exit_status, said["exit_reason"]) == (
        done.returncode,
        told["exit_reason"],
    )
    assert "target" not in verdict.report.environment.facts
    assert {finding.id for finding in verdict.findings} == {row[1] for row in _found(told) if row[0] != "aside"}


def _found(report: dict[str, Any]) -> list[tuple[str, ...]]:
    projects = report.get("projects", [report])
    rows = [
        (str(p.get("folder", "")), f["id"], f["status"], str(f["location"])) for p in projects for f in p["findings"]
    ]
    aside = [("aside", each["finding"]["id"], each["by"], "") for p in projects for each in p["suppressed"]]
    return [row for row in rows + aside if row[2] != "refuted"]


def test_files_count_over_the_active_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    Path("requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    stated = {**PADDED, "gpu.compute_capability": "8.0", "cuda.runtime": "12.4"}
    verdict = compatcheck.check(Path("requirements.txt"), assume=stated, probe=False, select=["CC-2024-0001"])
    assert [finding.status for finding in verdict.findings] == ["affected"]
    assert verdict.findings[0].location == (("requirements.txt", 1))
    assert verdict.report.environment.facts["target"]["prefix"] == sys.prefix


def test_a_refusal_is_one_exception_that_names_the_way_out() -> None:
    for refused in (
        lambda: compatcheck.check(snapshot={"schema_version": 7}),
        lambda: compatcheck.check(snapshot=DEMO, select=["CC-1999-0001"]),
        lambda: compatcheck.check(python="/nowhere/python"),
        lambda: compatcheck.probe("no_such_probe"),
    ):
        with pytest.raises(compatcheck.CompatcheckError) as told:
            refused()
        assert len(str(told.value).splitlines()) == 1


@pytest.mark.stack
def test_probes_run_in_the_interpreter_of_the_caller() -> None:
    measured = compatcheck.probe("softmax", device="cpu")
    assert measured.ok and [result.outcome for result in measured.results] == ["pass"]
    assert "softmax" in str(measured)


def test_pins_come_as_text_and_as_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.advice.index import write_index

    write_index(tmp_path, monkeypatch)
    Path("requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    stated = {**PADDED, "gpu.compute_capability": "8.0"}
    pins = compatcheck.pin("requirements.txt", assume=stated, torch_backend="index")
    assert pins.ok and "torch==2.5.1  # compatcheck: CC-2024-0001, was 2.5.0" in pins.text
    assert [(moved.name, moved.was, moved.now) for moved in pins.report.moved] == [("torch", "2.5.0", "2.5.1")]
    assert Path("requirements.txt").read_text(encoding="utf-8") == "torch==2.5.0\n"
    with pytest.raises(compatcheck.CompatcheckError, match="requirements.txt"):
        Path("requirements.txt").write_text("torch==1.0.0\ntorchvision==0.21.0\ntorch>3\n", encoding="utf-8")
        compatcheck.pin("requirements.txt", torch_backend="index")


def test_the_interface_is_loaded_when_it_is_asked_for() -> None:
    code = "import sys, compatcheck; print('compatcheck.api' in sys.modules, compatcheck.check is not None, end=' ')"
    code += "; print('compatcheck.api' in sys.modules, 'check' in dir(compatcheck))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True", "True"]
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        compatcheck.chek  # noqa: B018


def test_settings_and_a_baseline_count_where_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project = Path("pyproject.toml")
    project.write_text(
        '[tool.compatcheck]\nignore = [{ id = "CC-2024-0001", reason = "batch is 1", until = 2999-01-01 }]\n',
        encoding="utf-8",
    )
    assert compatcheck.check(snapshot=DEMO).ok
    plain = compatcheck.check(snapshot=DEMO, isolated=True)
    assert not plain.ok and plain.exit_reason == "1 finding at or above affected"
    ignored = compatcheck.check(snapshot=DEMO, settings=project)
    assert ignored.ok and ignored.report.suppressed[0].by == "ignore"
    Path("before.json").write_text(plain.to("json"), encoding="utf-8")
    known = compatcheck.check(snapshot=DEMO, baseline="before.json", isolated=True)
    assert known.ok and known.report.suppressed[0].by == "baseline"
    assert json.loads(known.to("json"))["exit_reason"] == "no finding at or above affected"
