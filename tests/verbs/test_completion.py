"""Completion as shells ask for it, and as it is typed in a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from compatcheck.cli import cli
from compatcheck.verbs import _completion
from tests.conftest import run_command

COMMAND = Path(sys.executable).with_name("compatcheck")
posix = pytest.mark.skipif(os.name == "nt" or shutil.which("bash") is None, reason="bash is not here")


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What is offered for the last of the words, as the script of a shell asks for it."""
    _completion.register()

    def ask(*words: str, shell: str = "bash") -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(("compatcheck", *words)))
        monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words)))
        made = get_completion_class(shell)
        assert made is not None
        return made(cli, {}, "compatcheck", "_COMPATCHECK_COMPLETE").complete().splitlines()

    return ask


def test_without_a_verb_verbs_and_files_are_offered(offered: Callable[..., list[str]]) -> None:
    first, *verbs = offered("")
    assert first == "file," and {"plain,check", "plain,explain", "plain,matrix"} <= set(verbs)
    assert "plain,--fail-on" in offered("--f")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("explain", "CC-2024-0001"), ["plain,CC-2024-0001"]),
        (("explain", "cc-2024-0001"), ["plain,CC-2024-0001"]),
        (("explain", "matm"), ["plain,matmul"]),
        (("check", "--ignore", "CC-2024-0001"), ["plain,CC-2024-0001"]),
        (("--select", "CC-2024-0001"), ["plain,CC-2024-0001"]),
        (("probe", "attention_m"), ["plain,attention_masked"]),
        (("matrix", "reproduce", "CC-2024-0001"), ["plain,CC-2024-0001"]),
        (("matrix", "sear"), ["plain,search"]),
        (("demo", "--format", "sa"), ["plain,sarif"]),
        (("demo", "--format", "=", "sa"), ["plain,sarif"]),
        (("probe", "--device", "cu"), ["plain,cuda"]),
        (("check", "--snapshot", "tests/ma"), ["file,tests/ma"]),
        (("train.sh", "ds_con"), ["file,ds_con"]),
        (("pin", "-o", "req"), ["file,req"]),
        (("diagnose", "run.l"), ["file,run.l"]),
        (("completion", "z"), ["plain,zsh"]),
    ],
    ids=" ".join,
)
def test_values_are_offered_by_what_help_calls_them(
    offered: Callable[..., list[str]], words: tuple[str, ...], expected: list[str]
) -> None:
    assert offered(*words) == expected


def test_zsh_and_fish_get_titles_and_a_value_with_its_option(offered: Callable[..., list[str]]) -> None:
    assert "--format=sarif" in offered("demo", "--format=sa", shell="fish")[0]
    assert "Masked attention" in offered("explain", "CC-2024-0001", shell="fish")[0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_accepts(shell: str, tmp_path: Path) -> None:
    done = run_command(sys.executable, "completion", shell, cwd=tmp_path)
    assert done.returncode == 0 and "_COMPATCHECK_COMPLETE" in done.stdout
    there = shutil.which(shell)
    if there:
        (tmp_path / "script").write_text(done.stdout)
        subprocess.run([there, "-n", str(tmp_path / "script")], check=True)


@posix
def test_a_real_bash_completes_what_is_typed() -> None:
    import pty

    child, terminal = pty.fork()
    if not child:
        os.environ.update(PATH=f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}", PS1="$ ", TERM="dumb")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    try:
        os.write(terminal, b'eval "$(compatcheck completion bash)"; echo rea"d"y\n')
        read_until(terminal, b"\nready")
        os.write(terminal, b"compatcheck expl\t")
        read_until(terminal, b"explain ")
        os.write(terminal, b"CC-2024-0090\t")
        read_until(terminal, b"CC-2024-0090 ")
        os.write(terminal, b"--lang=z\t")
        read_until(terminal, b"--lang=zh ")
    finally:
        os.write(terminal, b"\x03exit\n")
        os.close(terminal)
        os.waitpid(child, 0)


def read_until(terminal: int, wanted: bytes) -> None:
    """Read on until the text was shown, for half a minute at most."""
    import select

    shown, deadline = b"", time.monotonic() + 30
    while wanted not in shown.replace(b"\r", b""):
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 4096)
