"""The hooks as pre-commit runs them: installed from this repository into an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.settings.conftest import AFFECTED

pytestmark = pytest.mark.network

TRAIN = "output_dir: out\nper_device_train_batch_size: 4\nbf16: true\nlearning_rate: 0.0001\n"
IGNORE = '[[tool.compatcheck.ignore]]\nid = "CC-2024-0001"\nreason = "batch size is 1"\nuntil = 2999-01-31\n'


def git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """As somebody with no settings, and with no trace of a repository that the tests may run in."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") and key != "VIRTUAL_ENV"}
    who = {"GIT_CONFIG_GLOBAL": os.devnull, "PRE_COMMIT_HOME": str(cwd.parent / "pre-commit")}
    named = [part for key in ("user.name", "user.email") for part in ("-c", f"{key}=a@example.org")]
    command = ["git", *named, *arguments]
    return subprocess.run(command, cwd=cwd, env={**kept, **who}, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that offers the hooks: what is committed here, and what is not yet."""
    folder = tmp_path_factory.mktemp("hooks") / "compatcheck"
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "hooks")):
        assert git(*arguments, cwd=folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def repository(hooks: Path) -> Path:
    """A repository without a commit yet, in which the hooks are installed."""
    folder = hooks.parent / "project"
    folder.mkdir()
    revision = git("rev-parse", "HEAD", cwd=hooks).stdout.strip()
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {hooks}\n    rev: {revision}\n    hooks:\n      - id: compatcheck\n"
        "      - id: compatcheck-pins\n        args: [requirements.in, -o, requirements.txt]\n"
        "        files: ^requirements\\.in$\n",
        encoding="utf-8",
    )
    git("init", "-q", cwd=folder)
    done = subprocess.run([sys.executable, "-m", "pre_commit", "install"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def commit(repository: Path, **files: str) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (repository / name.replace("__", ".")).write_text(text, encoding="utf-8")
    git("add", "-A", cwd=repository)
    return git("commit", "-m", "work", cwd=repository)


def test_commits_pass_fail_and_are_ignored(repository: Path) -> None:
    pytest.importorskip("pre_commit")
    settings = f"[tool.compatcheck]\nassume = {list(AFFECTED)}\n"
    files = {"requirements__txt": "torch==2.5.0\n", "train__yaml": TRAIN, "compose__yaml": "services: [a]\n"}
    failed = commit(repository, pyproject__toml=settings, **files)
    assert failed.returncode == 1 and "affected  CC-2024-0001" in failed.stdout + failed.stderr
    passed = commit(repository, pyproject__toml=f"{settings}\n{IGNORE}")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert commit(repository, compose__yaml="services: [b]\n").returncode == 0
    again = commit(repository, pyproject__toml=settings, train__yaml=TRAIN.replace("4", "8"))
    assert again.returncode == 1
    assert commit(repository, requirements__txt="torch==2.5.1\n").returncode == 0


def test_pins_that_are_out_of_date_stop_a_commit(repository: Path) -> None:
    stale = commit(repository, requirements__in="python-dateutil\n", requirements__txt="python-dateutil==2.8.2\n")
    said = stale.stdout + stale.stderr
    assert stale.returncode == 1 and "requirements.txt is out of date" in said
    assert "compatcheck pin requirements.in -o requirements.txt" in said
    uv = next((repository.parent / "pre-commit").glob("repo*/py_env-*/bin/uv"))
    command = [str(uv.with_name("python")), "-m", "compatcheck", "pin", "requirements.in", "-o", "requirements.txt"]
    pinned = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    assert pinned.returncode == 0, pinned.stderr
    written = (repository / "requirements.txt").read_text(encoding="utf-8")
    assert "python-dateutil==2.8.2\n" in written and "six==" in written
    fresh = commit(repository)
    assert fresh.returncode == 0, fresh.stdout + fresh.stderr
