"""The child process that follows imports: what it leaves alone in ours, and how it ends."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from compatcheck.errors import CompatcheckError
from compatcheck.files import limits
from compatcheck.import_check import _process
from tests.import_check.conftest import install, target_of


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[str]]:
    """The child processes that are started, each with its exit status once it was waited for."""
    started: list[subprocess.Popen[str]] = []

    class Popen(subprocess.Popen[str]):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[call-overload]
            if "_remover" not in str(self.args):
                started.append(self)

    monkeypatch.setattr(_process.subprocess, "Popen", Popen)
    return started


@pytest.fixture
def deep(site: Path) -> Path:
    """A chain of 400 modules, each of which imports the next and the last a name that is not there."""
    files = {f"torch/m{n}.py": f"from torch import m{n + 1}\n" for n in range(400)}
    files |= {"torch/__init__.py": "from torch import m0\n"}
    files["torch/m400.py"] = "from torch.nothing import Gone\n"
    install(site, "torch", "2.5.0", files)
    return site


def test_deep_chains_are_followed_and_this_process_stays_as_it_is(
    deep: Path, children: list[subprocess.Popen[str]]
) -> None:
    modules: list[str] = []
    before = sys.getrecursionlimit(), threading.stack_size(), gc.isenabled(), threading.active_count()
    (found,) = _process.failures(target_of(deep), modules.append)
    assert (found["module"], found["file"], found["statements"]) == ("torch.nothing", "torch/m400.py", ["import torch"])
    assert modules == ["torch", *(f"torch.m{n}" for n in range(401))]
    assert before == (sys.getrecursionlimit(), threading.stack_size(), gc.isenabled(), threading.active_count())
    assert [each.returncode is not None for each in children] == [True]


def test_an_interrupt_ends_the_child(deep: Path, children: list[subprocess.Popen[str]]) -> None:
    def interrupt(module: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _process.failures(target_of(deep), interrupt)
    assert children[0].returncode is not None


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os.kill(os.getpid(), 9)", r"the child process ended with signal 9; check without --imports"),
        ("import sys; sys.stdin.read(); raise ValueError('no')", r"ended with exit status 1: ValueError: no;"),
        ("import sys; sys.exit('closed early')", r"ended with exit status 1: closed early;"),
        ("import sys; sys.stdin.read(); sys.stdout.write('{\"fail')", r"ended with exit status 0;"),
    ],
)
def test_a_child_that_dies_is_an_error_in_one_line(
    deep: Path, children: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    monkeypatch.setattr(_process, "_PROGRAM", program)
    with pytest.raises(CompatcheckError) as raised:
        _process.failures(target_of(deep))
    assert re.search(words, str(raised.value)) and "\n" not in str(raised.value)
    assert children[0].returncode is not None


def test_a_child_that_hangs_is_ended(
    deep: Path, children: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_process, "_PROGRAM", "import time; time.sleep(60)")
    monkeypatch.setattr(limits, "IMPORTS_SECONDS", 0.5)
    started = time.monotonic()
    with pytest.raises(CompatcheckError, match="took longer than"):
        _process.failures(target_of(deep))
    assert time.monotonic() - started < 30 and children[0].returncode is not None


def test_an_interpreter_that_does_not_start_is_an_error(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", os.fspath(deep / "nothing"))
    with pytest.raises(CompatcheckError, match="does not start: No such file"):
        _process.failures(target_of(deep))


def test_the_child_is_not_led_astray_by_the_folder_it_starts_in(
    deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')", encoding="utf-8")
    (tmp_path / "ast.py").write_text("raise SystemExit('shadowed')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert len(_process.failures(target_of(deep))) == 1


def test_the_child_costs_little(site: Path) -> None:
    """A new interpreter with our modules; an empty environment leaves nothing else to do."""
    best = min(_seconds(site) for _ in range(5))
    assert best < 2, best


def _seconds(site: Path) -> float:
    started = time.monotonic()
    assert _process.failures(target_of(site)) == []
    return time.monotonic() - started
