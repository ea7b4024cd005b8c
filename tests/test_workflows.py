"""The workflows: pinned, with no more rights than their work needs, and no right to write beside a stranger's code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
ACTIONS = sorted(FOLDER.parent.glob("actions/*/action.yml"))
STRANGERS = re.compile(r"\bpip install\b|\bcompatcheck\b|\bpython\b|\.ci/run")
FROM_OUTSIDE = re.compile(r"\$\{\{[^}]*(github\.event|github\.head_ref)[^}]*\}\}")


def read(path: Path) -> dict[Any, Any]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def jobs(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path.stem}.{name}", job) for name, job in read(path)["jobs"].items()]


@pytest.mark.parametrize("path", WORKFLOWS + ACTIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_actions_are_pinned_by_their_commit(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses:" in line and "uses: ./" not in line:
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_rights_are_stated_and_read_only_by_default(path: Path) -> None:
    workflow = read(path)
    assert set(workflow.get("permissions", {"all": "write"}).values()) <= {"read"}
    assert "pull_request_target" not in workflow[True], "YAML reads the key `on` as true"


@pytest.mark.parametrize(("name", "job"), [each for path in WORKFLOWS for each in jobs(path)])
def test_what_may_write_runs_no_code_of_the_repository(name: str, job: dict[str, Any]) -> None:
    if "write" not in job.get("permissions", {}).values():
        return
    commands = [step.get("run", "") for step in job.get("steps", [])]
    if not name.startswith("publish-matrix."):
        assert not any(STRANGERS.search(line) for each in commands for line in each.splitlines()), name
    assert not any("merge" in each for each in commands), "a person merges"


@pytest.mark.parametrize(("name", "job"), [each for path in WORKFLOWS for each in jobs(path)])
def test_commands_hold_no_text_of_strangers_and_parse(name: str, job: dict[str, Any]) -> None:
    for step in job.get("steps", []):
        command = step.get("run", "")
        assert not FROM_OUTSIDE.search(command), f"{name}: hand it over as a variable of the environment"
        if "${{" not in command:
            done = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def test_the_comment_follows_the_workflow_that_makes_it() -> None:
    made, told = read(FOLDER / "matrix-diff.yml"), read(FOLDER / "matrix-comment.yml")
    assert told[True]["workflow_run"]["workflows"] == [made["name"]]
    put = [step["with"]["name"] for step in made["jobs"]["diff"]["steps"] if "upload" in step.get("uses", "")]
    got = [step["with"]["name"] for step in told["jobs"]["comment"]["steps"] if "download" in step.get("uses", "")]
    assert put == got == ["matrix-diff"]


@pytest.mark.parametrize(("status", "opened"), [(0, False), (1, True)])
def test_watch_opens_an_issue_where_something_is_due(status: int, opened: bool, tmp_path: Path) -> None:
    steps = {step.get("name"): step for _, job in jobs(FOLDER / "matrix-watch.yml") for step in job["steps"]}
    answers = {"compatcheck": f"echo due > report/report.md; exit {status}", "git": "", "gh": 'echo "$@" >> gh.log'}
    for name, body in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "matrix" / "tables").mkdir(parents=True)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REPORT": "report", "TITLE": "due"}
    for name in ("Ask the index", "Open or renew a pull request, or an issue where no table changed"):
        command = ["bash", "-e", "-o", "pipefail", "-c", steps[name]["run"]]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
        (tmp_path / "report" / "tables").mkdir(exist_ok=True)
        (tmp_path / "report" / "tables" / "a.toml").touch()
    log = tmp_path / "gh.log"
    assert (log.exists() and "issue create --title due --body-file report/body.md" in log.read_text()) is opened


@pytest.mark.parametrize(("status", "opened"), [(0, False), (1, True)])
def test_sweep_opens_an_issue_where_a_probe_failed(status: int, opened: bool, tmp_path: Path) -> None:
    steps = {step.get("name"): step for _, job in jobs(FOLDER / "sweep.yml") for step in job["steps"]}
    python = f'echo "trl 9.9, newest: trl_sft: fail (1 s): wrong"; exit {status}'
    answers = {"python": python, "gh": 'echo "$@" >> gh.log; cat "${@: -1}" >> gh.log 2>&-; true'}
    for name, body in answers.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    record = tmp_path / "matrix" / "records" / "releases-swept.json"
    record.parent.mkdir(parents=True)
    record.touch()
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REPORT": "report", "TITLE": "fails"}
    for name in ("Probe the newest releases", "Open or renew an issue where a probe failed"):
        command = ["bash", "-e", "-o", "pipefail", "-c", steps[name]["run"]]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    log = (tmp_path / "gh.log").read_text(encoding="utf-8") if (tmp_path / "gh.log").exists() else ""
    assert ("issue create --title fails --body-file report/body.md" in log and "trl_sft: fail" in log) is opened


def test_workflows_that_sign_install_what_signs() -> None:
    text = (FOLDER / "publish-matrix.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"pip install --quiet (\S+) 'securesystemslib\[crypto\]'", text)) == {"'.[update]'"}


def test_a_linter_of_workflows_finds_nothing() -> None:
    zizmor = Path(sys.executable).parent / "zizmor"
    done = subprocess.run(
        [str(zizmor), "--offline", "--min-severity", "medium", str(ROOT / ".github")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_each_supported_python_is_tested_on_each_system() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    tests = read(FOLDER / "tests.yml")["jobs"]
    for job in ("quick", "full"):
        assert tests[job]["strategy"]["matrix"]["python"] == said
    assert tests["quick"]["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert sorted(tests["passed"]["needs"]) == sorted(set(tests) - {"passed"})


def test_nothing_is_published_before_it_is_tested_built_and_attested() -> None:
    release = read(FOLDER / "release.yml")["jobs"]
    assert set(release["attest"]["needs"]) == {"tests", "build", "zipapp"}
    assert (release["publish"]["needs"], release["tell"]["needs"]) == ("attest", "publish")
    assert release["publish"]["permissions"] == {"id-token": "write"} and release["publish"]["environment"] == "pypi"
    assert not any("password" in step.get("with", {}) for step in release["publish"]["steps"])


def test_one_workflow_deploys_the_site() -> None:
    deploying = [path.stem for path in WORKFLOWS if "actions/deploy-pages@" in path.read_text(encoding="utf-8")]
    assert deploying == ["pages"], "a deployment replaces the whole site"
    assert read(FOLDER / "publish-matrix.yml")["jobs"]["site"]["uses"] == "./.github/workflows/pages.yml"
