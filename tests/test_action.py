"""The composite action: its steps run by bash as a runner runs them, on a project with a fault."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.conftest import ROOT

FOLDER = ROOT / ".github" / "actions" / "compatcheck"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
STEPS = {step.get("id", step.get("name")): step for step in ACTION["runs"]["steps"]}
EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")
SCRIPT = """\
python train.py --model_name_or_path model --per_device_train_batch_size 2 \\
  --gradient_accumulation_steps 4 --output_dir out
"""


class Job(NamedTuple):
    """What a runner keeps of the step that judges."""

    status: int
    log: str
    summary: str
    outputs: dict[str, str]

    @property
    def commands(self) -> list[str]:
        """What the runner takes for commands: nothing between stop-commands and its token."""
        found, token = [], None
        for line in self.log.splitlines():
            if token:
                token = None if line == f"::{token}::" else token
            elif line.startswith("::stop-commands::"):
                token = line.removeprefix("::stop-commands::")
            elif line.startswith("::"):
                found.append(line)
        return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository whose training configuration has a fault in the releases that it pins."""
    folder = tmp_path / "训练 project"
    for name in (".git", "model"):
        (folder / name).mkdir(parents=True)
    (folder / "model" / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    (folder / "requirements.txt").write_text("accelerate==1.2.1\ntransformers==4.47.0\ntorch==2.5.1\n")
    (folder / "train.sh").write_text(SCRIPT)
    return folder


def valued(text: str, known: dict[str, str]) -> str:
    return EXPRESSION.sub(lambda found: known[found[1]], text)


def run_step(name: str, cwd: Path, known: dict[str, str], **environ: str) -> subprocess.CompletedProcess[str]:
    step = STEPS[name]
    stated = {key: valued(value, known) for key, value in step["env"].items()}
    bare = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=cwd / valued(step.get("working-directory", "."), known),
        env={**bare, "GITHUB_ACTION_PATH": str(FOLDER), **stated, **environ},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def judge(project: Path, **inputs: str) -> Job:
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    assert set(given) <= set(ACTION["inputs"])
    values = {name: each["default"] for name, each in ACTION["inputs"].items()} | {"assume": "python=3.12", **given}
    known = {f"inputs.{name}": value for name, value in values.items()}
    runner = project.parent / "runner"
    runner.mkdir(exist_ok=True)
    files = {name: runner / name.lower() for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for file in files.values():
        file.write_text("", encoding="utf-8")
    environ = {"RUNNER_TEMP": str(runner), **{name: str(file) for name, file in files.items()}}
    done = run_step("check", project, {**known, "steps.install.outputs.python": sys.executable}, **environ)
    written = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
    outputs = dict(line.split("=", 1) for line in written)
    return Job(done.returncode, done.stdout + done.stderr, files["GITHUB_STEP_SUMMARY"].read_text("utf-8"), outputs)


def test_a_fault_is_told_in_every_place_and_fails_the_job(project: Path) -> None:
    job = judge(project)
    assert job.status == 1, job.log
    assert job.commands and job.commands[0].startswith("::error file=train.sh,line=2,title=CC-2024-0040 ")
    assert job.summary.startswith("### compatcheck: :x: ")
    assert "affected  CC-2024-0040" in job.log
    assert job.outputs["exit-status"] == "1" and int(job.outputs["affected"]) == 1 and job.outputs["confirmed"] == "0"
    sarif = json.loads(Path(job.outputs["sarif"]).read_text(encoding="utf-8"))
    places = [each["locations"][0]["physicalLocation"] for each in sarif["runs"][0]["results"]]
    assert places[0]["artifactLocation"]["uri"] == "train.sh" and places[0]["region"] == {"startLine": 2}
    assert json.loads(Path(job.outputs["json"]).read_text(encoding="utf-8"))["findings"]
    assert set(job.outputs) == set(ACTION["outputs"])


def test_inputs_are_the_flags(project: Path) -> None:
    chosen = judge(project, select="\n CC-2024-0040 \n", fail_on="never")
    assert chosen.status == 0 and chosen.outputs["affected"] == "1"
    left = judge(project, ignore="CC-2024-0040")
    assert left.status == 0 and left.outputs["affected"] == "0"
    assert "no known fault" in left.summary and not left.commands


def test_annotations_and_summary_can_be_left_out(project: Path) -> None:
    job = judge(project, annotations="false", summary="false")
    assert job.status == 1 and not job.commands and not job.summary


def test_a_folder_below_is_named_as_the_repository_has_it(project: Path) -> None:
    below = project / "nested folder"
    below.mkdir()
    for name in ("requirements.txt", "train.sh", "model"):
        (project / name).rename(below / name)
    job = judge(project, working_directory="nested folder")
    assert job.commands[0].startswith("::error file=nested folder/train.sh,line=2,")
    sarif = json.loads(Path(job.outputs["sarif"]).read_text(encoding="utf-8"))
    place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "nested%20folder/train.sh", "uriBaseId": "%SRCROOT%"}


def test_several_projects_are_counted_together(project: Path) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        for file in ("requirements.txt", "train.sh"):
            (project / name / file).write_bytes((project / file).read_bytes())
    job = judge(project, paths="one\ntwo\nmodel")
    assert job.status == 1 and job.outputs["affected"] == "2"
    assert {line.split(",")[0] for line in job.commands} == {f"::error file={name}/train.sh" for name in ("one", "two")}


@pytest.mark.parametrize("hostile", ["$(touch owned)`touch owned`; touch owned; ' touch owned '", "-oowned"])
def test_inputs_are_never_run(project: Path, hostile: str) -> None:
    inputs = ("python", "snapshot", "assume", "fail_on", "select", "ignore")
    assert judge(project, paths=hostile).status == 2
    assert judge(project, **dict.fromkeys(inputs, hostile)).status == 2
    assert not (project / "owned").exists()


def test_modules_of_the_repository_are_not_imported(project: Path) -> None:
    for name in ("compatcheck", "click", "json", "rich"):
        (project / f"{name}.py").write_text("raise SystemExit('imported from the repository')\n", encoding="utf-8")
    assert judge(project).outputs["affected"] != "0"


def test_names_of_files_are_no_commands(project: Path) -> None:
    (project / "train.sh").rename(project / "::error::a,b:c%0A.sh")
    job = judge(project, paths="requirements.txt\nmodel\n::error::a,b:c%0A.sh")
    assert job.commands[0].startswith("::error file=%3A%3Aerror%3A%3Aa%2Cb%3Ac%250A.sh,line=2,")


def test_what_cannot_be_judged_uploads_nothing(project: Path) -> None:
    job = judge(project, paths="missing.txt", upload_sarif="true")
    assert job.status == 2 and job.outputs == {"exit-status": "2"}
    assert "missing.txt" in job.log


def test_what_was_set_aside_fails_nothing_and_is_not_uploaded(project: Path) -> None:
    """A report becomes the baseline of the next run, and an ignore holds in the action as elsewhere."""
    first = judge(project)
    kept = project / "baseline.json"
    kept.write_bytes(Path(first.outputs["json"]).read_bytes())
    second = judge(project, baseline="baseline.json")
    ignores = 'ignore = [{id = "CC-2024-0040", reason = "SGD, short runs", until = 9999-01-01}]'
    (project / "pyproject.toml").write_text(f"[tool.compatcheck]\n{ignores}\n")
    third = judge(project)
    for job, why in ((second, "baseline"), (third, "SGD, short runs")):
        assert job.status == 0 and job.outputs["affected"] == "0" and job.outputs["suppressed"] == "1", job.log
        assert not job.commands and why in job.summary and "1 suppressed" in job.summary
        assert json.loads(Path(job.outputs["sarif"]).read_text(encoding="utf-8"))["runs"][0]["results"] == []


@pytest.mark.parametrize(("version", "asked"), [("", f"{FOLDER}/../../.."), ("0.1.0", "compatcheck==0.1.0")])
def test_the_installed_version_is_that_of_the_action_or_the_one_named(tmp_path: Path, version: str, asked: str) -> None:
    python = tmp_path / "python"
    python.write_text(
        '#!/usr/bin/env bash\nprintf "%s\\n" "$@" >> calls\n'
        'case "$*" in *venv*) mkdir -p "${@: -1}/bin"; cp "$0" "${@: -1}/bin/python";; esac\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    known = {"steps.python.outputs.python-path": str(python), "inputs.version": version}
    output = tmp_path / "output"
    done = run_step("install", tmp_path, known, RUNNER_TEMP=str(tmp_path / "r"), GITHUB_OUTPUT=str(output))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines()[-2:] == ["--", asked]
    assert output.read_text(encoding="utf-8") == f"python={tmp_path}/r/compatcheck/bin/python\n"


def test_every_step_is_pinned_and_takes_inputs_through_its_environment() -> None:
    text = (FOLDER / "action.yml").read_text(encoding="utf-8")
    for line in text.splitlines():
        assert "uses:" not in line or re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line
    assert not any("${{" in step.get("run", "") for step in STEPS.values())
    assert all(step.get("shell") == "bash" for step in STEPS.values() if "run" in step)


def test_every_input_is_used_and_described() -> None:
    text = (FOLDER / "action.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    inputs: dict[str, Any] = ACTION["inputs"]
    assert used == set(inputs)
    assert all(each["description"].endswith((".", "index.")) for each in inputs.values())
