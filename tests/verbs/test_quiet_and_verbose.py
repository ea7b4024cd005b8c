"""What --quiet leaves out and --verbose adds, and what progress does on each kind of standard error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_command

MACHINES = ROOT / "tests" / "machines"
LOGS = ROOT / "tests" / "symptoms" / "logs"
BAD = str(MACHINES / "glm-4-batch-2-torch-2.5.0.json")
CLEAN = str(MACHINES / "glm-4-batch-2-torch-2.5.1.json")
NAN = str(LOGS / "transformers-4.48-nan-from-step-16.log")
FOUND = "affected CC-2024-0001 Masked attention gives NaN gradients on torch 2.5.0\n"
UNRUN = (
    "numerics required: the probe of CC-2024-0001 could not run: this environment is not installed here; "
    "check an installed environment, without --no-probe"
)
posix = pytest.mark.skipif(os.name == "nt", reason="a pseudo-terminal is one of POSIX")


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, *arguments, cwd=cwd)


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--snapshot", BAD], 1, FOUND),
        (["--snapshot", CLEAN], 0, ""),
        (["--snapshot", BAD, "--fail-on", "confirmed"], 0, ""),
        (["--snapshot", BAD, "--fail-on", "never"], 0, ""),
        (["--snapshot", BAD, "--require-probe"], 4, f"{FOUND}{UNRUN}\n"),
    ],
    ids=lambda value: " ".join(Path(word).name for word in value) if isinstance(value, list) else None,
)
def test_a_quiet_check_prints_what_its_exit_status_stands_for(options: list[str], status: int, said: str) -> None:
    done = run("check", "-q", *options)
    assert (done.returncode, done.stdout, done.stderr) == (status, said, "")


def test_a_quiet_diagnosis_names_the_line_where_it_began() -> None:
    done = run("diagnose", "-q", NAN, "--assume", "distributions.torch=2.5.0")
    shown, fits = done.stdout.splitlines()
    assert done.returncode == 1 and shown.startswith(f"{NAN}:165: loss 0.0 with grad_norm nan")
    assert fits.startswith("plausible CC-2024-0001 ")
    assert run("diagnose", "-q", str(LOGS / "transformers-5-healthy.log")).stdout == ""


def test_quiet_leaves_the_report_of_a_script_as_it_is() -> None:
    options = ("--snapshot", BAD, "--format", "json")
    assert run("check", "-q", *options).stdout == run("check", *options).stdout


def test_verbose_tells_the_evidence_and_beside_the_report_the_times() -> None:
    done = run("check", "-v", "--snapshot", BAD)
    assert "see    https://github.com/pytorch/pytorch/pull/138522" in done.stdout
    assert done.stderr.startswith("took matrix ") and "facts" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", [["check"], ["diagnose", NAN], ["pin"], ["probe"]], ids=lambda verb: verb[0])
def test_quiet_and_verbose_exclude_each_other(verb: list[str]) -> None:
    done = run(*verb, "-q", "-v")
    assert (done.returncode, done.stdout) == (2, "") and "--quiet and --verbose" in done.stderr


WORK = """
import sys, time
from compatcheck.terminal import messages, progress
if sys.argv[1:] == ["quiet"]:
    progress.silence()
with progress.imports_progress() as show:
    show("torch.nn"); time.sleep(0.3)
with progress.probe_progress() as show:
    show("matmul", "importing torch", 12.0); time.sleep(0.3)
with progress.bytes_progress("hashing 2 files", 10**9) as advance:
    advance(10**9); time.sleep(0.3)
with progress.resolving_progress(60) as show:
    show(); time.sleep(0.3)
    messages.say("said in between"); time.sleep(0.3)
"""


def on_a_terminal(*arguments: str, **environ: str) -> str:
    """What the work tells on a terminal of eighty columns."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    scrubbed = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "TERM")}
    command = [sys.executable, "-c", WORK, *arguments]
    with subprocess.Popen(command, stderr=theirs, env={**scrubbed, "TERM": "xterm", **environ}) as process:
        os.close(theirs)
        told = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break
            if not chunk:
                break
            told += chunk
    os.close(ours)
    assert process.returncode == 0
    return told.decode()


@posix
def test_progress_is_drawn_over_itself_on_a_terminal() -> None:
    told = on_a_terminal()
    for each in ("torch.nn", "about 12 s left, matmul: importing torch", "hashing 2 files", "version set 2, at most "):
        assert each in told
    assert "\x1b[2K" in told and "probing matmul" not in told
    assert "\x1b[2Kcompatcheck: said in between\r\n" in told and told.endswith("\x1b[2K")
    assert all(len(row) < 80 for row in told.replace("\r", "\x1b[2K").split("\x1b[2K"))


@posix
def test_progress_is_told_in_lines_on_a_dumb_terminal() -> None:
    told = on_a_terminal(TERM="dumb")
    assert "\x1b" not in told
    assert told.replace("\r\n", "\n").startswith("following imports\nprobing matmul\nhashing 2 files, 1.0 GB\n")


@posix
def test_quiet_progress_is_none() -> None:
    assert on_a_terminal("quiet") == "compatcheck: said in between\r\n"


def test_quiet_data_and_model_name_what_is_wrong_alone(tmp_path: Path) -> None:
    row = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "%s"}]}\n'
    (tmp_path / "rows.jsonl").write_text(row % "" + row % "ok", encoding="utf-8")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (tmp_path / "model" / "model.safetensors").write_text("junk", encoding="utf-8")
    rows, files = (run(*each, "-q", cwd=tmp_path) for each in (["data", "rows.jsonl"], ["model", "model"]))
    assert rows.returncode == 1 and [each[:13] for each in rows.stdout.splitlines()] == ["rows.jsonl:1:"]
    assert files.returncode == 1 and files.stdout.startswith("model.safetensors: ")
