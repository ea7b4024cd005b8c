"""Which environment a command judges: named, active, found in the project, or none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import uv
from tests.settings.conftest import AFFECTED, Run, installation, project, run

__all__ = ["installation", "project", "run"]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the venvs are laid out as on POSIX")
ASSUMED = ("--no-probe", *(part for fact in AFFECTED for part in ("--assume", fact)))
TRAIN = "output_dir: out\nper_device_train_batch_size: 4\nbf16: true\nlearning_rate: 0.0001\n"


def venv(folder: Path, **versions: str) -> Path:
    """A venv with the metadata of these distributions, which is all that is read of them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    for name, version in versions.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    return folder


def fault(done: subprocess.CompletedProcess[str]) -> bool:
    return "affected  CC-2024-0001" in done.stdout


def test_the_venv_of_the_project_is_judged_and_named(run: Run, tmp_path: Path) -> None:
    venv(tmp_path / ".venv", torch="2.5.0")
    stated = ("training.per_device_train_batch_size=2", "training.dtype=bfloat16")
    done = run("check", *ASSUMED, *(part for fact in stated for part in ("--assume", fact)), cwd=tmp_path)
    assert done.returncode == 1 and fault(done)
    assert "packages     .venv (found in the project), 1 package: " in done.stdout
    assert "torch 2.5.0" in done.stdout and "click" not in done.stdout


def test_the_venv_of_the_folder_that_a_path_names_is_judged(run: Run, tmp_path: Path) -> None:
    some = tmp_path / "some" / "project"
    (some / "configs").mkdir(parents=True)
    (some / "configs" / "train.yaml").write_text(TRAIN, encoding="utf-8")
    venv(some / "venv", torch="2.5.0")
    venv(tmp_path / ".venv", torch="2.9.0")
    for path in ("some/project", "some/project/configs", "some/project/configs/train.yaml"):
        assert "some/project/venv (found in " in run("check", path, "--no-probe", cwd=tmp_path).stdout, path
    assert "packages     .venv (found in the project)" in run("check", "--no-probe", cwd=tmp_path).stdout


def test_an_active_environment_counts_before_the_one_of_the_project(run: Run, tmp_path: Path) -> None:
    venv(tmp_path / ".venv", torch="2.5.0")
    active = venv(tmp_path / "active", torch="2.9.1")
    done = run("check", "--no-probe", cwd=tmp_path, VIRTUAL_ENV=str(active))
    assert "torch 2.9.1" in done.stdout and "(VIRTUAL_ENV)" in done.stdout
    named = run("check", "--no-probe", "--python", ".venv", cwd=tmp_path, VIRTUAL_ENV=str(active))
    assert "torch 2.5.0" in named.stdout and "packages     .venv (--python)" in named.stdout


@pytest.mark.parametrize("arguments", [(), (".",), ("check", "--no-probe"), ("env",), ("probe", "--smoke"), ("pin",)])
def test_nothing_to_judge_is_no_verdict(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    done = run(*arguments, cwd=tmp_path / "empty")
    assert (done.returncode, done.stdout) == (3, "") and len(done.stderr.splitlines()) == 1, done.stderr
    assert "--python" in done.stderr or "pass an interpreter" in done.stderr


def test_what_to_give_names_the_requirements_at_hand(run: Run, project: Path) -> None:
    done = run("check", cwd=project)
    assert done.returncode == 3 and "check requirements.txt with `compatcheck .`" in done.stderr


def test_requirements_stand_for_the_environment_where_there_is_none(run: Run, project: Path) -> None:
    done = run("check", ".", *ASSUMED, cwd=project)
    assert (
        done.returncode == 1 and fault(done) and "packages     requirements.txt (1 pinned): torch 2.5.0" in done.stdout
    )
    recorded = json.loads(run("env", ".", cwd=project).stdout)
    assert recorded["distributions"] == {"torch": "2.5.0"} and not recorded["distributions_complete"]
    assert "target" not in recorded and "python" not in recorded and recorded["platform"]["system"]


def test_requirements_count_over_the_venv_of_the_project(run: Run, project: Path) -> None:
    venv(project / ".venv", torch="2.9.1", peft="0.18.0")
    done = run("check", ".", *ASSUMED, cwd=project)
    assert fault(done) and "peft 0.18.0" in done.stdout
    assert "packages     requirements.txt (1 pinned), .venv (found in the project), 1 package: " in done.stdout


def test_a_training_alone_leaves_the_packages_unknown(run: Run, project: Path) -> None:
    (project / "requirements.txt").unlink()
    done = run("check", "train.yaml", "--no-probe", cwd=project)
    assert "- packages     not judged: no environment is active, and there is no .venv" in done.stdout
    assert "too few facts to judge" in done.stdout and "no known fault" not in done.stdout
    recorded = json.loads(run("env", "train.yaml", cwd=project).stdout)
    assert "distributions" not in recorded
    assert recorded["unknown"]["distributions"] == "no environment is active, and there is no .venv"


@pytest.mark.parametrize("broken", ["dangling", "no settings"])
def test_a_broken_venv_is_told_and_the_rest_is_judged(run: Run, project: Path, broken: str) -> None:
    folder = venv(project / ".venv", torch="2.9.1")
    if broken == "dangling":
        shutil.rmtree(folder / "bin")
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to("/gone/python3.11")
    else:
        (folder / "pyvenv.cfg").unlink()
    seen = {"dangling": "the interpreter is a dangling link", "no settings": "the folder has no pyvenv.cfg"}[broken]
    alone = run("check", cwd=project)
    assert alone.returncode == 3 and seen in alone.stderr and len(alone.stderr.splitlines()) == 1
    done = run("check", ".", *ASSUMED, cwd=project)
    assert done.returncode == 1 and fault(done) and "packages     requirements.txt (1 pinned)" in done.stdout
    assert seen in " ".join(done.stdout.split()) and "2.9.1" not in done.stdout


def test_our_own_interpreter_counts_where_it_is_the_venv_of_the_project(
    run: Run, tmp_path: Path, installation: Path
) -> None:
    own = venv(tmp_path / ".venv", torch="2.5.0")
    (Path(sysconfig.get_path("purelib", vars={"base": str(own), "platbase": str(own)})) / "x.pth").write_text(
        f"{installation}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8"
    )
    environ = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "CONDA_PREFIX")}

    def judged(cwd: Path) -> subprocess.CompletedProcess[str]:
        command = [str(own / "bin" / "python"), "-m", "compatcheck", "check", "--no-probe"]
        return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)

    here = judged(tmp_path)
    assert "torch 2.5.0" in here.stdout and "packages     .venv (found in the project)" in here.stdout
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    assert judged(elsewhere).returncode == 3


def test_the_interface_and_the_command_agree_on_one_folder(run: Run, project: Path) -> None:
    venv(project / ".venv", torch="2.5.0", transformers="4.48.0")
    code = "import compatcheck; print(compatcheck.check('.', probe=False).to('json'))"
    python = str(project / ".venv" / "bin" / "python")
    ours = os.pathsep.join((str(Path(__file__).parents[2]), sysconfig.get_path("purelib")))
    environ = {**os.environ, "PYTHONPATH": ours}
    by_interface = subprocess.run(
        [python, "-c", code], cwd=project, env=environ, capture_output=True, text=True, check=True
    )
    by_command = run("check", ".", "--no-probe", "--format", "json", cwd=project, PYTHONPATH=ours)
    one, other = json.loads(by_interface.stdout), json.loads(by_command.stdout)
    assert [(each["id"], each["status"], each["missing"]) for each in one["findings"]] == [
        (each["id"], each["status"], each["missing"]) for each in other["findings"]
    ]
    assert one["environment"]["target"] == other["environment"]["target"]
    assert one["environment"]["target"]["selected_by"] == "found in the project"


@pytest.mark.network
def test_what_an_installer_put_into_the_venv_is_judged(run: Run, tmp_path: Path) -> None:
    uv("venv", "--python", sys.executable, str(tmp_path / ".venv"))
    uv("pip", "install", "--python", str(tmp_path / ".venv"), "einops==0.8.0", "packaging==24.1")
    recorded = json.loads(run("env", cwd=tmp_path).stdout)
    assert recorded["distributions"] == {"einops": "0.8.0", "packaging": "24.1"}
    assert recorded["distributions_complete"] and recorded["target"]["selected_by"] == "found in the project"
