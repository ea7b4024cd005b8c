"""Following the imports of an environment on request, and what later commands repeat of it."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.import_check.conftest import install


@pytest.fixture
def skewed(tmp_path: Path) -> Path:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(venv), "platbase": str(venv)}))
    install(site, "transformers", "4.50.0", {"transformers/__init__.py": "class Trainer: ...\n"})
    install(site, "peft", "0.15.0", {"peft/__init__.py": "from transformers import Gone\n"})
    return venv


def test_what_was_followed_once_is_repeated_by_later_commands(skewed: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        return run_command(sys.executable, *arguments, "--python", str(skewed), cwd=tmp_path, **cache)

    before = run("check", "--no-probe")
    assert before.returncode == 0 and "imports      not followed (--imports)" in before.stdout
    asked = run("check", "--no-probe", "--imports")
    assert asked.returncode == 1 and "Gone" in asked.stdout and "CC-2026-0050" in asked.stdout
    assert "Gone" in run("check", "--no-probe").stdout
    assert "Gone" in json.dumps(json.loads(run("env").stdout)["unresolved_imports"])
    assert run("check", "--no-probe", "--no-imports").returncode == 0


@pytest.mark.parametrize(
    ("lines", "torch", "nccl"),
    [
        ("", "2.1.0a0+32f93b1", "2.19.3"),
        ("RUN pip install transformers==4.36.0 torch\n", "2.1.0a0+32f93b1", "2.19.3"),
        ("RUN pip install torch==2.2.0\n", "2.2.0", None),
        ("RUN pip install vllm==0.3.3\n", None, None),
    ],
)
def test_a_dockerfile_on_nvidia_s_container_is_judged_by_what_that_holds(
    tmp_path: Path, lines: str, torch: str | None, nccl: str | None
) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM nvcr.io/nvidia/pytorch:23.10-py3\n{lines}", encoding="utf-8")
    done = run_command(sys.executable, "check", ".", "--no-probe", "--format", "json", cwd=tmp_path)
    report = json.loads(done.stdout)
    inferred = {path: fact["value"] for path, fact in report["inferred"].items() if "value" in fact}
    stated = report["environment"]["distributions"].get("torch")
    assert (inferred["python"], inferred["cuda.toolkit"], inferred.get("cuda.nccl")) == ("3.10", "12.2", nccl)
    assert inferred.get("distributions.torch", stated) == torch
    assert report["environment"].keys().isdisjoint({"python", "cuda"})
    assert report["environment"]["platform"].keys() <= {"system", "machine"}
