from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck.matrix.compile import write_compiled
from tests.conftest import ROOT, run_command

Run = Callable[..., "subprocess.CompletedProcess[str]"]

IGNORE = 'ignore = [{ id = "CC-2024-0001", reason = "batch size is 1", until = 2999-01-31 }]'
AFFECTED = ("training.attention=sdpa", "cuda.runtime=12.4", "gpu.compute_capability=9.0")
"""What makes CC-2024-0001 affected with torch 2.5.0, and not merely possible."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose pinned torch is one that breaks masked attention (CC-2024-0001), trained on one H100."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    (folder / "train.yaml").write_text(
        "output_dir: out\nper_device_train_batch_size: 4\nbf16: true\nlearning_rate: 0.0001\n", encoding="utf-8"
    )
    return folder


@pytest.fixture
def settle(project: Path) -> Callable[[str], None]:
    """Write the table ``[tool.compatcheck]`` with what makes the entry affected, and these lines."""

    def write(lines: str = "", assume: bool = True) -> None:
        stated = f"assume = {list(AFFECTED)}\n" if assume else ""
        (project / "pyproject.toml").write_text(f"[tool.compatcheck]\n{stated}{lines}\n", encoding="utf-8")

    return write


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package and the matrix in its compiled form, as a wheel has it: a checkout compiles it anew."""
    folder = tmp_path_factory.mktemp("installation")
    package = shutil.copytree(ROOT / "compatcheck", folder / "compatcheck", ignore=shutil.ignore_patterns("data"))
    shutil.copytree(ROOT / "compatcheck" / "data", package / "data")
    write_compiled(ROOT / "matrix", package / "matrix" / "data")
    return folder


@pytest.fixture
def run(project: Path, installation: Path) -> Run:
    """The command in the project's folder; what is judged is its files, as no environment is active."""

    def call(*arguments: str, cwd: Path = project, **environ: str) -> subprocess.CompletedProcess[str]:
        return run_command(sys.executable, *arguments, cwd=cwd, **{"PYTHONPATH": str(installation), **environ})

    return call
