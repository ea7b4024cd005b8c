"""What `compatcheck pin` takes, what it refuses, and what it says before it answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.advice.index import write_index
from tests.advice.tiny_wheels import write_wheel
from tests.conftest import run_command
from tests.verbs.test_pin import PADDED

Run = Callable[..., subprocess.CompletedProcess[str]]
KNOWN_BUT_THE_GPU = tuple(each for each in PADDED if "gpu." not in each)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    links = write_index(tmp_path, monkeypatch)
    write_wheel(links, "vllm", "0.6.3", ["torch==2.4.1"])
    write_wheel(links, "trl", "0.9.0.post1", ["torch"])
    return lambda *arguments: run_command(sys.executable, "pin", *arguments, cwd=tmp_path)


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [line.partition("  #")[0] for line in done.stdout.splitlines()]


def test_requirements_on_the_command_line_are_pinned(run: Run) -> None:
    found = lines(run("torch==2.5.0", "transformers", *PADDED))
    assert found[0].startswith("# This file was made by compatcheck pin torch==2.5.0 transformers --assume=")
    assert found[1:3] == ["torch==2.5.1", "transformers==5.0.0"]


def test_standard_input_goes_with_files_and_requirements(run: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.in").write_text("peft\n", encoding="utf-8")
    command = [sys.executable, "-m", "compatcheck", "pin", "-", "requirements.in", "deepspeed"]
    text = "# mine\ntorch==2.6.0\n"
    done = subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True, check=False)
    assert {"torch==2.6.0", "peft==0.14.0", "deepspeed==0.19.8", "# mine"} <= set(lines(done))


def test_a_file_that_is_missing_is_not_taken_for_a_requirement(run: Run) -> None:
    done = run("requirements.txt")
    assert done.returncode == 2 and "requirements.txt" in done.stderr and "index" not in done.stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("torch==9.9.9", "the command line:1: torch has no version 9.9.9; the nearest are torch==2.11.0"),
        ("torch==2.5.9", "torch has no version 2.5.9; the nearest are torch==2.5.1 and torch==2.6.0"),
        ("transfomers", "no package is called transfomers; did you mean transformers"),
        ("wholly-unheard-of", "no package is called wholly-unheard-of; correct the name"),
    ],
)
def test_what_no_index_has_is_refused_in_one_line(run: Run, asked: str, said: str) -> None:
    done = run(asked, "peft")
    assert done.returncode == 2 and not done.stdout
    assert said in done.stderr.splitlines()[-1]


def test_a_version_that_is_there_as_a_post_release_is_a_patch_away(run: Run) -> None:
    assert "trl==0.9.0.post1" in lines(run("trl==0.9.0"))


def test_the_requirement_at_fault_is_named_before_another_set_is_looked_for(run: Run) -> None:
    done = run("vllm==0.6.3", "torch==2.5.0", "--report", "json=report.json")
    assert {"vllm==0.6.3", "torch==2.4.1"} <= set(lines(done))
    first = done.stderr.splitlines()[1]
    assert first.startswith("these versions cannot be installed together: Because ")
    assert "vllm depend on torch==2.4.1" in first and "torch==2.5.0" in first
    assert "torch  2.5.0 -> 2.4.1: the versions cannot be installed together, see above" in done.stderr
    assert "torch==2.4.1  # compatcheck: the requirements, was 2.5.0" in done.stdout


def test_what_is_brought_along_moves_before_what_is_asked_for(run: Run, tmp_path: Path) -> None:
    """As xtuner brings a peft that the pinned transformers is too old for."""
    for version in ("0.13.2", "0.15.0"):
        write_wheel(tmp_path / "links", "peft", version, ["torch"])
    write_wheel(tmp_path / "links", "transformers", "4.41.2")
    write_wheel(tmp_path / "links", "xtuner", "0.1.21", ["peft", "transformers"])
    done = run("transformers==4.41.2", "xtuner==0.1.21", "torch==2.6.0")
    assert {"transformers==4.41.2", "xtuner==0.1.21", "peft==0.13.2"} <= set(lines(done)), done.stdout
    assert "0.15.0 -> 0.13.2: peft 0.15.0 imports transformers." in done.stderr, done.stderr
    assert "no version has to change" in done.stderr


def test_a_set_with_a_finding_says_so_first(run: Run) -> None:
    done = run("torch>=2.5.0,<2.5.1", *PADDED)
    assert done.returncode == 1
    assert "NOT CLEAN: these pins do not fix CC-2024-0001" in done.stderr.splitlines()[:3]
    assert done.stdout.splitlines()[1].startswith("# compatcheck: NOT CLEAN, fix this by hand: CC-2024-0001 ")


def test_a_patch_is_taken_where_only_the_gpu_is_not_known(run: Run) -> None:
    assert "torch==2.5.1" in lines(run("torch==2.5.0", *KNOWN_BUT_THE_GPU))
    more = [each for each in KNOWN_BUT_THE_GPU if "dtype" not in each]
    done = run("torch==2.5.0", *more)
    assert "torch==2.5.0" in lines(done) and "torch 2.5.1" in done.stderr


def test_the_command_in_the_header_does_not_make_a_file_out_of_date(run: Run, tmp_path: Path) -> None:
    asked = tmp_path / "requirements.txt"
    asked.write_text("torch==2.5.0\n", encoding="utf-8")
    assert run("requirements.txt", *PADDED, "-o", "requirements.txt").returncode == 0
    again = run("requirements.txt", *PADDED, "--check", "-q")
    assert again.returncode == 0, again.stderr
    assert run("requirements.txt", *PADDED, "--diff", "-o", "requirements.txt", "-q").stdout == ""
    assert run("requirements.txt", *PADDED, "-o", "requirements.txt").returncode == 0
    assert asked.read_text(encoding="utf-8").count("This file was made by") == 1


def test_nothing_is_built_where_nothing_moved(run: Run) -> None:
    done = run("torch==2.6.0", *PADDED, "--verify")
    assert done.returncode == 0 and "no version changed, so nothing was built or verified" in done.stderr
    assert "building" not in done.stderr
