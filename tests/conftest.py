from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

from compatcheck import matrix
from compatcheck.matrix import Matrix

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # or torch's threads spin where tests run side by side

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "matrix"
LONGEST = (
    *("probes/test_zero.py", "verbs/test_pin_verify.py", "probes/test_micro_training.py", "tools/test_real_stacks.py"),
    *("probes/test_distributed.py", "report/test_site.py", "cluster/test_live.py", "test_pre_commit.py"),
    *(
        "test_release.py",
        "test_quality.py",
        "docs/test_sessions.py",
        "test_founding_cases.py",
        "probes/test_kernels.py",
    ),
)
"""The files that take most of the time, longest first: one of them at the end would leave the other processes idle."""


class Wheel(NamedTuple):
    """The built wheel, and a fresh virtual environment that holds it and nothing of the source tree."""

    path: Path
    python: Path

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return run_command(self.python, *arguments, cwd=cwd)


def pytest_configure(config: pytest.Config) -> None:
    """Interrupts as in a terminal, one thread for each process of torch, and for uv the folder of pip's wheels.

    Files run in their order, where pytest-xdist would take those with most tests first.

    A shell without job control starts its background jobs with interrupts ignored, which their children inherit.
    Small models gain nothing by threads, which wait for each other busily where two tests share the processors.
    """
    config.option.loadscopereorder = False
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PIP_FIND_LINKS" in os.environ:
        os.environ.setdefault("UV_FIND_LINKS", os.environ["PIP_FIND_LINKS"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first; a test that needs the index is as slow as the index is that day."""
    for item in items:
        if item.get_closest_marker("network"):
            item.add_marker("slow")
    rank = {Path(__file__).parent / file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


def run_command(python: Path | str, *arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command as people type it, with nothing of the caller's environment that could change its output."""
    removed = (
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "COMPATCHECK_LANG",
        "HF_HUB_OFFLINE",
        "TRANSFORMERS_OFFLINE",
    )
    scrubbed = {key: value for key, value in os.environ.items() if key not in removed}
    return subprocess.run(
        [str(python), "-m", "compatcheck", *arguments],
        cwd=cwd,
        env={**scrubbed, "NO_COLOR": "1", **environ},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def uv(*arguments: str, cwd: Path | None = None) -> None:
    from uv import find_uv_bin

    done = subprocess.run([find_uv_bin(), *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def build(source: Path, out: Path, *kinds: str, **environ: str) -> list[Path]:
    """What `python -m build` makes of a source tree: the kinds asked for, as "--wheel" and "--sdist"."""
    command = [sys.executable, "-m", "build", *kinds, "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(out.iterdir())


def bare_environment(folder: Path) -> Path:
    """The interpreter of a new virtual environment that holds nothing."""
    uv("venv", "--python", sys.executable, str(folder))
    return folder.joinpath(*(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    """Built here, or the one that COMPATCHECK_WHEEL names."""
    folder = tmp_path_factory.mktemp("wheel")
    named = os.environ.get("COMPATCHECK_WHEEL")
    path = Path(named) if named else next(path for path in build(ROOT, folder, "--wheel") if path.suffix == ".whl")
    python = bare_environment(folder / "venv")
    uv("pip", "install", "--python", str(python), str(path))
    return Wheel(path, python)


@pytest.fixture(scope="session")
def stack() -> Path:
    """The interpreter of this test environment, which holds torch, transformers, DeepSpeed and PEFT."""
    pytest.importorskip("torch")
    return Path(sys.executable)


@pytest.fixture(scope="session")
def known() -> Matrix:
    """The matrix of this checkout."""
    return matrix.load(str(SOURCES))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An empty ``site-packages``."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    return folder
