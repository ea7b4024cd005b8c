"""A link that came with a folder is followed to nothing outside of it when a file is written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from compatcheck.errors import InputError
from compatcheck.files.storage import write
from compatcheck.integrations._diagnosis import write_report
from tests.conftest import run_command

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and devices are those of POSIX")

KEPT = "private\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with links to a file and a folder outside of it, to one inside of it, and into its ``.git``."""
    outside, clone = tmp_path / "outside", tmp_path / "clone"
    outside.mkdir()
    (outside / "file.txt").write_text(KEPT, encoding="utf-8")
    (clone / ".git" / "hooks").mkdir(parents=True)
    (clone / "reports").mkdir()
    (clone / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    (clone / "out.txt").symlink_to("../outside/file.txt")
    (clone / "pyproject.toml").symlink_to("../outside/file.txt")
    (clone / "runs").symlink_to("../outside")
    (clone / "hook.txt").symlink_to(".git/hooks/pre-push")
    (clone / "inside.txt").symlink_to("reports/inside.txt")
    monkeypatch.chdir(clone)
    return clone


@pytest.mark.parametrize("name", ["out.txt", "runs/file.txt", "runs/new.txt", "hook.txt"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_link_out_of_the_folder_is_refused(name: str, whole: bool, repository: Path) -> None:
    with pytest.raises(InputError, match=r"^writing .*: a link leads out of its folder, to /"):
        write(str(repository / name) if whole else name, "x")
    assert os.listdir(repository.parent / "outside") == ["file.txt"] and not os.listdir(".git/hooks")
    assert (repository.parent / "outside" / "file.txt").read_text(encoding="utf-8") == KEPT


def test_a_link_in_a_folder_elsewhere_is_refused_too(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match="a link leads out"):
        write(str(repository / "out.txt"), "x")


def test_links_inside_devices_and_streams_are_written_to(repository: Path) -> None:
    write("inside.txt", "x")
    assert (repository / "reports" / "inside.txt").read_text(encoding="utf-8") == "x"
    (repository / "null").symlink_to(os.devnull)
    write("null", "x")
    done = run_command(sys.executable, "explain", "CC-2024-0001", "-o", "/dev/stdout", cwd=repository)
    assert done.returncode == 0 and "CC-2024-0001" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "requirements.txt", "--no-probe", "-o", "out.txt"],
        ["check", "requirements.txt", "--no-probe", "--report", "json=out.txt"],
        ["env", "-o", "out.txt"],
        ["pin", "requirements.txt", "--offline", "--diff", "-o", "out.txt"],
        ["ignore", "CC-2024-0001", "--reason", "x", "--until", "2099-01-01"],
        ["cluster", "--record", "runs"],
        ["matrix", "export", "-o", "runs"],
        ["matrix", "site", "runs"],
        ["diagnose", "requirements.txt", "--snapshot-out", "out.txt"],
    ],
    ids=lambda each: " ".join(each[:2]),
)
def test_no_verb_writes_through_a_link_out(arguments: list[str], repository: Path) -> None:
    done = run_command(sys.executable, *arguments, cwd=repository)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert KEPT.strip() not in done.stdout + done.stderr
    outside = repository.parent / "outside"
    assert os.listdir(outside) == ["file.txt"] and (outside / "file.txt").read_text(encoding="utf-8") == KEPT


def test_the_report_of_the_guard_follows_folders_and_no_link_of_its_name(repository: Path) -> None:
    with pytest.raises(InputError, match="a link leads out"):
        write_report("out.txt", ())
    write_report("runs/guard.md", ())
    assert sorted(os.listdir(repository.parent / "outside")) == ["file.txt", "guard.md"]
