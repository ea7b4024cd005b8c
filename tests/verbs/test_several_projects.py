"""Several projects in one command: each is judged with its own files, and what they contradict is shown."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.settings.conftest import AFFECTED, Run, installation, project, run

__all__ = ["installation", "project", "run"]

TRAIN = "output_dir: out\nper_device_train_batch_size: 4\nbf16: true\nlearning_rate: 0.0001\n"
ASSUMED = ("--no-probe", *(part for fact in AFFECTED for part in ("--assume", fact)))
UV_LOCK = """\
version = 1
requires-python = ">=3.11"
[[package]]
name = "mine"
version = "0"
source = {{ virtual = "." }}
dependencies = [{{ name = "torch" }}]
[[package]]
name = "torch"
version = "{0}"
source = {{ registry = "https://pypi.org/simple" }}
"""
CONDA = "dependencies:\n  - {0}\n"
POETRY_LOCK = """\
[[package]]
name = "torch"
version = "{0}"
description = ""
optional = false
python-versions = "*"
files = []

[metadata]
lock-version = "2.0"
python-versions = "*"
content-hash = "x"
"""


def lay(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_txt", ".txt").replace("_yaml", ".yaml").replace(
            "_json", ".json"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    """Two projects that differ in their torch, of which the first breaks masked attention."""
    return lay(
        tmp_path / "mono",
        old__requirements_txt="torch==2.5.0\n",
        old__configs__train_yaml=TRAIN,
        new__requirements_txt="torch==2.5.1\n",
        new__train_yaml=TRAIN,
    )


@pytest.mark.parametrize("paths", [(".",), ("old", "new"), ("new", "old"), (".", "old/configs/..")])
def test_each_project_is_judged_with_its_own_files(run: Run, mono: Path, paths: tuple[str, ...]) -> None:
    done = run("check", *paths, *ASSUMED, cwd=mono)
    assert done.returncode == 1 and done.stdout.count("affected  CC-2024-0001") == 1
    sections = done.stdout.split("\n\nold\n")
    assert len(sections) == 2 and "packages     old/requirements.txt" in sections[1]
    assert "\n\nnew\n" in done.stdout and "packages     new/requirements.txt" in done.stdout
    assert "1 of 2 projects has known faults" in done.stdout
    assert run("check", "new", *ASSUMED, cwd=mono).returncode == 0


def test_the_shape_of_several_reports(run: Run, mono: Path) -> None:
    done = run("check", ".", *ASSUMED, "--format", "json", cwd=mono)
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report.keys() == {"schema_version", "projects", "exit_reason"}
    assert [each["project"] for each in report["projects"]] == ["new", "old"]
    new, old = report["projects"]
    assert (new["environment"]["distributions"], old["environment"]["distributions"]) == (
        {"torch": "2.5.1"},
        {"torch": "2.5.0"},
    )
    assert [each["id"] for each in old["findings"] if each["status"] == "affected"] == ["CC-2024-0001"]
    assert report["exit_reason"] == "old: 1 finding at or above affected"
    assert new["exit_reason"] == "no finding at or above affected"
    alone = json.loads(run("check", "old", *ASSUMED, "--format", "json", cwd=mono).stdout)
    assert alone.keys() - {"schema_version"} == old.keys() - {"project"}


def test_formats_of_findings_hold_those_of_every_project(run: Run, mono: Path) -> None:
    lay(mono, new__requirements_txt="torch==2.5.0\n")
    formats = ("sarif", "github", "junit", "gitlab", "markdown", "html")
    reports = [part for name in formats for part in ("--report", f"{name}=out.{name}")]
    run("check", "old", "new", *ASSUMED, *reports, cwd=mono)
    files = {name: (mono / f"out.{name}").read_text(encoding="utf-8") for name in formats}
    results = json.loads(files["sarif"])["runs"][0]["results"]
    places = {
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for each in results
        if each["ruleId"] == "CC-2024-0001"
    }
    assert len(json.loads(files["sarif"])["runs"]) == 1 and len(places) == 2
    assert {place.split("/")[0] for place in places} == {"old", "new"}
    issues = [each for each in json.loads(files["gitlab"]) if each["check_name"] == "CC-2024-0001"]
    assert {each["location"]["path"] for each in issues} == places
    assert len({each["fingerprint"] for each in json.loads(files["gitlab"])}) == len(json.loads(files["gitlab"]))
    cases = ElementTree.fromstring(files["junit"]).iter("testcase")
    assert {each.get("file") for each in cases if "CC-2024-0001" in str(each.get("name"))} == places
    for place in places:
        assert f"::error file={place}," in files["github"]
    for name in ("markdown", "html"):
        assert "old" in files[name] and "new" in files[name]
        assert files[name].count("CC-2024-0001") >= 2


def test_a_finding_that_no_file_states_belongs_to_its_project(run: Run, mono: Path) -> None:
    lay(mono, old__requirements_txt="torch==2.5.1\n", base_json='{"schema_version": 1, "findings": []}')
    stated = ("--assume", "distributions.torch=2.5.0")
    before = run("check", "old", "new", *ASSUMED, *stated, "--format", "json", "-o", "before.json", cwd=mono)
    assert before.returncode == 1
    reports = json.loads((mono / "before.json").read_text(encoding="utf-8"))["projects"]
    marks = [each["fingerprint"] for report in reports for each in report["findings"] if each["id"] == "CC-2024-0001"]
    assert len(set(marks)) == 2
    known = run("check", "old", "new", *ASSUMED, *stated, "--baseline", "before.json", cwd=mono)
    assert known.returncode == 0 and known.stdout.count("suppressed: 1 known in the baseline") == 2
    assert run("check", "old", "new", *ASSUMED, *stated, "--baseline", "base.json", cwd=mono).returncode == 1


def test_quiet_names_the_files_of_every_project(run: Run, mono: Path) -> None:
    lay(mono, new__requirements_txt="torch==2.5.0\n")
    done = run("check", ".", "-q", *ASSUMED, cwd=mono)
    assert sorted(line.split("/")[0] for line in done.stdout.splitlines()) == ["new", "old"]


def test_a_list_nearer_to_a_training_counts_and_others_belong_to_the_root(run: Run, mono: Path) -> None:
    lay(mono, requirements_txt="torch==2.9.0\n", configs__a_yaml=TRAIN, new__deep__er__b_yaml=TRAIN)
    report = json.loads(run("check", ".", *ASSUMED, "--format", "json", cwd=mono).stdout)
    places = {
        each["project"]: sorted({at["file"] for at in each["environment"]["locations"].values()})
        for each in report["projects"]
    }
    assert places["."] == ["configs/a.yaml", "requirements.txt"]
    assert places["old"] == ["old/configs/train.yaml", "old/requirements.txt"]
    assert set(places) == {".", "old", "new"} and "new/requirements.txt" in places["new"]


@pytest.mark.parametrize(
    "paths",
    [
        ("old/configs/train.yaml", "new/requirements.txt"),
        ("old/configs", "new/requirements.txt"),
        ("docker", "old/configs"),
        ("docker", "old/configs", "zero"),
    ],
)
def test_what_completes_one_another_is_one_project(run: Run, mono: Path, paths: tuple[str, ...]) -> None:
    lay(mono, docker__requirements_txt="torch==2.5.1\n", zero__ds_json='{"zero_optimization": {"stage": 3}}')
    done = run("check", *paths, "--no-probe", "--format", "json", cwd=mono)
    found = json.loads(done.stdout)["environment"]
    assert found["distributions"] == {"torch": "2.5.1"} and found["training"]["per_device_train_batch_size"] == 4
    assert ("zero" in paths) == bool(found["training"].get("deepspeed"))


def test_a_dockerfile_beside_no_training_belongs_to_the_project_above(run: Run, mono: Path) -> None:
    image = "FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-devel\n"
    lay(
        mono,
        old__docker__Dockerfile=image,
        new__image__Dockerfile=image,
        new__image__train_yaml=TRAIN,
        dock__Dockerfile=image,
    )
    report = json.loads(run("check", ".", *ASSUMED, "--format", "json", cwd=mono).stdout)
    found = {each["project"]: each for each in report["projects"]}
    assert set(found) == {"dock", "new", "new/image", "old"}
    assert [remark["text"] for remark in found["old"]["remarks"]] == [
        "torch 2.5.0 is used here, but old/docker/Dockerfile:1 requires ==2.4.0"
    ]
    assert not found["new"]["remarks"] and found["new/image"]["environment"]["distributions"]["torch"] == "2.4.0"


def test_a_model_belongs_to_every_project(run: Run, mono: Path) -> None:
    lay(mono, base__config_json='{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    reports = json.loads(run("check", "old", "new", "base", "--no-probe", "--format", "json", cwd=mono).stdout)
    assert [each["environment"]["model"]["type"] for each in reports["projects"]] == ["llama", "llama"]


@pytest.mark.parametrize("verb", ["env", "pin"])
def test_a_command_for_one_project_asks_which(run: Run, mono: Path, verb: str) -> None:
    done = run(verb, ".", cwd=mono)
    assert done.returncode == 2 and "there are 2 projects: new, old; choose one of these projects" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_command_for_one_project_takes_the_one_of_the_folder(run: Run, mono: Path) -> None:
    lay(mono, requirements_txt="torch==2.9.0\n")
    assert json.loads(run("env", ".", cwd=mono).stdout)["distributions"] == {"torch": "2.9.0"}


def test_a_project_of_which_nothing_is_known_is_told_beside_the_others(run: Run, mono: Path) -> None:
    lay(mono, empty__requirements_txt="# nothing yet\n")
    done = run("check", ".", "--no-probe", cwd=mono)
    assert done.returncode == 0 and "judging empty: " in done.stderr and "\n\nempty\n" not in done.stdout


def test_each_project_is_judged_with_its_own_venv(run: Run, mono: Path) -> None:
    from tests.verbs.test_environment_choice import venv

    venv(mono / "new" / ".venv", torch="2.5.1", peft="0.18.0")
    report = json.loads(run("check", ".", "--no-probe", "--format", "json", cwd=mono).stdout)
    new, old = (each["environment"] for each in report["projects"])
    assert new["distributions"]["peft"] == "0.18.0" and "peft" not in old["distributions"]
    assert new["target"]["prefix"] == str(mono / "new" / ".venv") and "target" not in old


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"requirements_txt": "peft==0.14.0\ntorch==2.5.0\n", "requirements-old_txt": "torch==2.4.1\n"},
            "requirements.txt:2: torch 2.5.0 is used here, but requirements-old.txt:1 requires ==2.4.1",
        ),
        (
            {"requirements_txt": "torch>=2.6\n", "uv.lock": UV_LOCK.format("2.5.0")},
            "uv.lock:8: torch 2.5.0 is used here, but requirements.txt:1 requires >=2.6",
        ),
        (
            {"poetry.lock": POETRY_LOCK.format("2.5.0"), "uv.lock": UV_LOCK.format("2.6.0")},
            "uv.lock:8: torch 2.6.0 is used here, but poetry.lock:1 requires ==2.5.0",
        ),
        (
            {"Dockerfile": "FROM pytorch/pytorch:2.5.0-cuda12.4-cudnn9-devel\n", "requirements_txt": "torch==2.6.0\n"},
            "requirements.txt:1: torch 2.6.0 is used here, but Dockerfile:1 requires ==2.5.0",
        ),
        (
            {"environment.yml": "dependencies:\n  - pytorch=2.4.0\n  - numpy=1.26.4\n",
             "requirements_txt": "numpy==2.0.0\ntorch==2.5.0\n"},
            "requirements.txt:2: torch 2.5.0 is used here, but environment.yml:2 requires ==2.4.0;"
            " environment.yml differs in 1 more package",
        ),
        (
            {"environment.yml": CONDA.format("pytorch=2.4.0"), "environment_yaml": CONDA.format("numpy=1")},
            "none of environment.yaml, environment.yml was read; pass the file that is in use",
        ),
    ],
)  # fmt: skip
def test_lists_that_contradict_one_another_are_shown(
    run: Run, tmp_path: Path, files: dict[str, str], said: str
) -> None:
    folder = lay(tmp_path / "one", **files, train_yaml=TRAIN)
    done = run("check", ".", "--no-probe", cwd=folder)
    assert f"note      {said}" in " ".join(done.stdout.split()).replace("note ", "note      "), done.stdout
    assert done.stdout.count("note ") == 1


@pytest.mark.parametrize(
    "files",
    [
        {"requirements_txt": "torch>=2.5\npeft\n", "uv.lock": UV_LOCK.format("2.5.1+cu124")},
        {"requirements_txt": "torch==2.5.1\n", "uv.lock": UV_LOCK.format("2.5.1+cu124")},
        {"requirements_txt": "torch==2.5.1\n", "requirements-dev_txt": "-r requirements.txt\nrich==14.0.0\n"},
        {"requirements_txt": "torch==2.6.0\n",
         "Dockerfile": "FROM pytorch/pytorch:2.5.0-cuda12.4-cudnn9-devel\nRUN pip install -r requirements.txt\n"},
    ],
)  # fmt: skip
def test_lists_that_agree_are_no_contradiction(run: Run, tmp_path: Path, files: dict[str, str]) -> None:
    done = run("check", ".", "--no-probe", cwd=lay(tmp_path / "one", **files, train_yaml=TRAIN))
    assert "torch 2." in done.stdout and "note " not in done.stdout


@pytest.mark.parametrize(
    ("text", "seen"),
    [("-r requirements.txt\ntorch==2.5.0\n", "the includes form a cycle"), ("torch=2.5.0\n", "line 1: ")],
)
def test_a_broken_list_costs_that_list_alone(run: Run, tmp_path: Path, text: str, seen: str) -> None:
    folder = lay(tmp_path / "one", requirements_txt=text, train_yaml=TRAIN, **{"uv.lock": UV_LOCK.format("2.5.0")})
    done = run("check", ".", *ASSUMED, cwd=folder)
    assert done.returncode == 1 and "affected  CC-2024-0001" in done.stdout
    assert f"reading requirements from requirements.txt: {seen}" in " ".join(done.stdout.split())
    named = run("check", "requirements.txt", "train.yaml", *ASSUMED, cwd=folder)
    assert named.returncode == 2 and seen in named.stderr and len(named.stderr.splitlines()) == 1


def test_the_hook_shows_a_contradiction_of_the_project_it_judges(run: Run, mono: Path) -> None:
    lay(mono, **{"new__requirements-old_txt": "torch==2.4.1\n"})
    done = run("hook", "new/train.yaml", "old/configs/train.yaml", *ASSUMED[1:], cwd=mono)
    assert (
        done.returncode == 1
        and " ".join(done.stdout.split()).count("but new/requirements-old.txt:1 requires ==2.4.1") == 1
    )
