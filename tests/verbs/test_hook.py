"""`compatcheck hook`: what is judged of a commit, and that nothing of the machine it is made on counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck import matrix
from compatcheck.errors import InputError
from compatcheck.installed.target import is_active
from compatcheck.pipelines import commit
from compatcheck.pipelines.verdict import Options
from compatcheck.project.commit import read_changes
from compatcheck.settings import Settings
from compatcheck.terminal import progress
from tests.conftest import ROOT
from tests.settings.conftest import AFFECTED, Run, installation, run

__all__ = ["installation", "run"]

TRAIN = "output_dir: out\nper_device_train_batch_size: 4\nbf16: true\nlearning_rate: 0.0001\n"
ASSUMED = tuple(part for fact in AFFECTED for part in ("--assume", fact))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository of two projects, of which one pins the torch that breaks masked attention, and of other files."""
    for name, version in (("old", "2.5.0"), ("new", "2.5.1")):
        configs = tmp_path / name / "configs"
        configs.mkdir(parents=True)
        (tmp_path / name / "requirements.txt").write_text(f"torch=={version}\n", encoding="utf-8")
        (configs / "train.yaml").write_text(f"{TRAIN}deepspeed: ../ds.json\n", encoding="utf-8")
        (tmp_path / name / "ds.json").write_text('{"zero_optimization": {"stage": 3}}', encoding="utf-8")
    (tmp_path / "package.json").write_text('{"name": "web"}', encoding="utf-8")
    (tmp_path / "compose.yaml").write_text("services: [a]\n", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("a: [", encoding="utf-8")
    (tmp_path / "setup.py").write_text("import setuptools\n", encoding="utf-8")
    return tmp_path


def judged(*files: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(change.project, change.paths) for change in read_changes(files)]


def test_a_configuration_is_judged_with_the_packages_of_its_own_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert judged("old/configs/train.yaml", "new/configs/train.yaml") == [
        ("old", ("old/configs/train.yaml", "old/requirements.txt")),
        ("new", ("new/configs/train.yaml", "new/requirements.txt")),
    ]


def test_a_trainer_of_the_projects_own_is_judged_with_its_packages(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / "new" / "trainer.py").write_text(
        "from transformers import Trainer\nclass Mine(Trainer):\n    def log(self, logs): pass\n", encoding="utf-8"
    )
    assert judged("new/trainer.py") == [("new", ("new/trainer.py", "new/requirements.txt"))]
    assert ("new", ("new/trainer.py", "new/requirements.txt")) in judged("new/requirements.txt")


def test_a_script_is_judged_as_its_launch_line_starts_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    code = "from transformers import Trainer, TrainingArguments\nTrainer(args=TrainingArguments('o')).train()\n"
    for name in ("train.py", "alone.py"):
        (project / "new" / name).write_text(code, encoding="utf-8")
    (project / "new" / "run.sh").write_text("torchrun --nproc_per_node 2 train.py\n", encoding="utf-8")
    pins = "new/requirements.txt"
    assert judged("new/train.py") == [("new", ("new/run.sh", pins))]
    assert judged("new/alone.py") == [("new", ("new/alone.py", pins))]
    assert {("new", ("new/run.sh", pins)), ("new", ("new/alone.py", pins))} < set(judged(pins))


@pytest.mark.parametrize("changed", ["old/requirements.txt", "old/ds.json"])
def test_what_trainings_share_has_all_of_them_judged(
    project: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    monkeypatch.chdir(project)
    (project / "old" / "configs" / "other.yaml").write_text(TRAIN, encoding="utf-8")
    paths = [each[0] for project, each in judged(changed) if project == "old"]
    assert {"old/configs/train.yaml", "old/configs/other.yaml"} <= set(paths)
    assert not [each for each in judged(changed) if each[0] == "new"]


def test_the_project_at_hand_is_the_one_of_a_file_that_no_other_has(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "old")
    assert judged("configs/train.yaml") == [(".", ("configs/train.yaml", "requirements.txt"))]
    (project / "old" / "requirements.txt").unlink()
    assert judged("configs/train.yaml") == [(".", ("configs/train.yaml",))]


def test_files_of_other_kinds_are_passed_over_in_silence(run: Run, project: Path) -> None:
    done = run("hook", "package.json", "compose.yaml", "broken.yaml", "setup.py", "gone.yaml", cwd=project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert run("hook", cwd=project).returncode == 0


def test_a_commit_fails_by_what_it_touches(run: Run, project: Path) -> None:
    failing = run("hook", *ASSUMED, "compose.yaml", "old/configs/train.yaml", cwd=project)
    assert failing.returncode == 1 and "affected  CC-2024-0001" in failing.stdout and "possible" not in failing.stdout
    assert run("hook", *ASSUMED, "new/configs/train.yaml", cwd=project).returncode == 0
    pins = run("hook", *ASSUMED, "old/requirements.txt", "new/requirements.txt", cwd=project)
    assert pins.returncode == 1 and pins.stdout.count("affected  CC-2024-0001") == 1


def test_an_ignore_and_a_baseline_count_as_in_a_check(run: Run, project: Path) -> None:
    ignore = 'paths = ["old/**"], reason = "x", until = 2999-01-01'
    (project / "pyproject.toml").write_text(
        f'[tool.compatcheck]\nassume = {list(AFFECTED)}\nignore = [{{ id = "CC-2024-0001", {ignore} }}]\n',
        encoding="utf-8",
    )
    done = run("hook", "old/configs/train.yaml", cwd=project)
    assert (done.returncode, done.stdout) == (0, "")
    assert run("hook", "--isolated", *ASSUMED, "old/configs/train.yaml", cwd=project).returncode == 1
    (project / "base.json").write_text('{"schema_version": 1, "findings": []}', encoding="utf-8")
    assert run("hook", "--isolated", *ASSUMED, "--baseline", "base.json", "old/ds.json", cwd=project).returncode == 1
    assert run("hook", "--baseline", "gone.json", "old/ds.json", cwd=project).returncode == 2


def test_what_is_installed_or_active_here_does_not_count(run: Run, project: Path) -> None:
    (project / "old" / "requirements.txt").unlink()
    done = run("hook", *ASSUMED, "--fail-on", "possible", "old/configs/train.yaml", cwd=project, VIRTUAL_ENV="/none")
    assert done.returncode == 1 and "/none" not in done.stdout and "missing: distributions.torch" in done.stdout


def test_a_broken_file_is_told_where_the_commit_touches_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    (project / "old" / "ds_config.json").write_text('{"zero_optimization": ', encoding="utf-8")
    with pytest.raises(InputError, match="ds_config.json"):
        read_changes(["old/ds_config.json"])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("requirements.txt", True),
        ("sub/requirements-dev.txt", True),
        ("notes.txt", False),
        ("uv.lock", True),
        ("yarn.lock", False),
        ("a/Dockerfile.cuda", True),
        ("a/train.yml", True),
        ("run.sh", True),
        ("train.py", True),
        ("train.ipynb", True),
        ("README.md", False),
    ],
)
def test_the_hook_asks_for_the_files_we_read(name: str, wanted: bool) -> None:
    import re

    import yaml

    hook = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]
    assert bool(re.search(hook["files"], name)) is wanted


def test_the_environment_of_a_hook_is_nobodys() -> None:
    of_a_hook = {"VIRTUAL_ENV": "/cache/repo1/py_env-python3.11", "PRE_COMMIT": "1"}
    assert not is_active(of_a_hook) and not is_active({})
    assert is_active({"VIRTUAL_ENV": "/home/me/.venv", "PRE_COMMIT": "1"})
    assert is_active({"CONDA_PREFIX": "/opt/conda"})


def test_a_large_commit_is_judged_with_progress(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", -1.0)
    monkeypatch.chdir(project)
    changes = [change for name in ("old", "new") for change in read_changes([f"{name}/configs/train.yaml"])]
    commit.judge(2 * changes, matrix.load(), Options(Settings()))
    assert capsys.readouterr().err.splitlines() == [f"checking the commit, {share} %" for share in (25, 50, 75)]
