"""The workflows: pinned, with no more rights than their work needs, and no right to write beside a stranger's code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
STRANGERS = re.compile(r"\bpip install\b|\bcompatcheck\b|\bpython\b|\.ci/run")
FROM_OUTSIDE = re.compile(r"\$\{\{[^}]*(github\.event|github\.head_ref)[^}]*\}\}")


def read(path: Path) -> dict[Any, Any]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def jobs(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path.stem}.{name}", job) for name, job in read(path)["jobs"].items()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_their_commit(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
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
    commands = [step.get("run", "") for step in job["steps"]]
    if name.startswith("matrix-"):
        assert not any(STRANGERS.search(line) for each in commands for line in each.splitlines()), name
    assert not any("merge" in each for each in commands), "a person merges"


@pytest.mark.parametrize(("name", "job"), [each for path in WORKFLOWS for each in jobs(path)])
def test_commands_hold_no_text_of_strangers_and_parse(name: str, job: dict[str, Any]) -> None:
    for step in job["steps"]:
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
