"""`compatcheck probe`: what is chosen, what is asked of it, what it says, and with which status it ends."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck.pipelines.probe import context
from tests.conftest import ROOT, run_command
from tests.probes.test_forked_children import waited_for
from tests.probes.test_run import gone

posix = pytest.mark.skipif(os.name == "nt", reason="signals and terminals are those of POSIX")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command, with a cache of its own."""
    return lambda *arguments: run_command(
        sys.executable, "probe", *arguments, cwd=ROOT, XDG_CACHE_HOME=str(tmp_path / "cache"), OMP_NUM_THREADS="1"
    )


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A venv with nothing in it, whose `torch` a test may write."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    return tmp_path / "venv"


def plant(venv: Path, source: str) -> None:
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "torch.py").write_text(source, encoding="utf-8")


def listed(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, object]]:
    return {each["name"]: each for each in json.loads(done.stdout)["probes"]}


def test_the_list_shows_what_each_profile_runs(run: Run) -> None:
    every, smoke, quick = (listed(run("--list", "--format", "json", *more)) for more in ([], ["--smoke"], ["--quick"]))
    assert {"matmul", "attention_masked", "cross_entropy", "adamw", "bitwise_repeat"} <= set(smoke)
    assert set(smoke) < set(quick) < set(every)
    assert set(every) - set(quick) == {name for name, each in every.items() if each["profile"] == "deep"}
    line = next(line for line in run("--list").stdout.splitlines() if line.startswith("gradient_accumulation"))
    assert re.search(r"(quick|deep) +\d+\.\d s  Gradient accumulation of the .* Needs torch>=1.13, ", line)


def test_what_the_request_asks_for_joins_the_quick_profile(run: Run) -> None:
    request = '{"samples_file": "samples.jsonl"}'
    assert "labels_masked" not in listed(run("--list", "--format", "json", "--quick"))
    assert "labels_masked" in listed(run("--list", "--format", "json", "--quick", "--request", request))
    assert "labels_masked" not in listed(run("--list", "--format", "json", "--smoke", "--request", request))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nosuch"], "unknown probe; `compatcheck probe --list` lists them"),
        (["--device", "tpu"], "there is no such device; choose from auto, cpu, cuda"),
        (["--request", '{"device": "tpu"}'], "there is no such device"),
        (["--request", "[1]"], "the value is not an object"),
        (["--request", '{"dtype": "float17"}'], "float17: there is no such dtype; choose from float64, float32"),
        (["--request", '{"dtype": ["float16"]}'], "dtype: ['float16'] is no"),
        (["--request", '{"seed": "abc"}'], "seed: 'abc' is not a whole number"),
        (["--request", '{"seed": null}'], "seed: None is not a whole number"),
        (["--request", '{"config": 3}'], "config: 3 is not an object"),
        (["--request", "[" * 100_000], "reading --request"),
        (["--model", "/nowhere/model"], "/nowhere/model"),
        (["--config", "/nowhere/train.yaml"], "/nowhere/train.yaml"),
        (["--python", "/nowhere/python", "labels_masked"], "/nowhere/python"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_line(run: Run, arguments: list[str], named: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr and done.stderr.startswith("compatcheck: ")
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 1000


@pytest.mark.parametrize(
    "config",
    ["", "[]", '{"hidden_size": 64', '{"a": 1, "a": 2}', "[" * 200_000, '{"x": "' + "y" * (17 << 20) + '"}'],
    ids=["empty", "list", "cut", "repeated", "deep", "large"],
)
def test_a_hostile_config_is_refused_in_one_line(run: Run, tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    for model in (tmp_path, tmp_path / "config.json"):
        done = run("--list", "--model", str(model))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "config.json" in done.stderr


@pytest.mark.parametrize(
    ("source", "options", "status", "outcome"),
    [
        ("raise ImportError('undefined symbol: iJIT_NotifyEvent')", (), 4, "skip"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", (), 4, "crash"),
        ("raise ImportError('undefined symbol')", ("--require-probe",), 4, "skip"),
    ],
    ids=["broken", "fatal", "required"],
)
@posix
def test_a_torch_that_cannot_be_imported_is_one_clear_line_a_probe(
    run: Run, venv: Path, source: str, options: tuple[str, ...], status: int, outcome: str
) -> None:
    plant(venv, source)
    started = time.monotonic()
    done = run("--python", str(venv), "matmul", "cross_entropy", *options)
    assert done.returncode == status and time.monotonic() - started < 20
    *lines, summary = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [[outcome, "matmul"], [outcome, "cross_entropy"]]
    assert all("undefined symbol" in line or "SIGSEGV; last stage 'import torch'" in line for line in lines)
    assert summary.startswith(f"2 {outcome}; ")


@posix
def test_ours_ended_by_a_signal_leaves_no_process(venv: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    plant(venv, f"import os, time\nprint(os.getpid(), file=open({str(pid_file)!r}, 'w'), flush=True)\ntime.sleep(60)\n")
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        pid_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "compatcheck", "probe", "--python", str(venv), "matmul"]
        ours = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child = int(waited_for(pid_file))
        ours.send_signal(number)
        out, _ = ours.communicate(timeout=20)
        assert ours.returncode == status and ("interrupted" in out) is (number == signal.SIGINT)
        assert gone(child)


def test_the_users_model_and_settings_make_the_request(tmp_path: Path) -> None:
    for name, model_type in (("ours", "glm"), ("theirs", "llama")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"model_type": model_type}), encoding="utf-8")
    settings = {"bf16": True, "per_device_train_batch_size": 2, "output_dir": "out", "learning_rate": 1e-5}
    written = {**settings, "gradient_accumulation_steps": 4, "model_name_or_path": str(tmp_path / "theirs")}
    (tmp_path / "train.json").write_text(json.dumps(written), encoding="utf-8")
    stated = context(None, str(tmp_path / "train.json"))
    assert stated["dtype"] == "bfloat16" and stated["training"]["gradient_accumulation_steps"] == 4
    assert (stated["config"], stated["model_folder"]) == ({"model_type": "llama"}, str(tmp_path / "theirs"))
    named = context(str(tmp_path / "ours"), str(tmp_path / "train.json"))
    assert (named["config"], named["model_folder"]) == ({"model_type": "glm"}, str(tmp_path / "ours"))
    alone = context(str(tmp_path / "ours" / "config.json"), None)
    assert alone == {"config": {"model_type": "glm"}}


def test_a_file_without_training_settings_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    done = run("--list", "--training", str(tmp_path / "requirements.txt"))
    assert (done.returncode, done.stderr.count("\n")) == (
        2,
        1,
    ) and "the file contains no training setting" in done.stderr


@pytest.mark.stack
def test_what_was_measured_is_remembered_until_fresh(run: Run, stack: Path) -> None:
    first, second, third = (
        json.loads(run("cross_entropy", "--format", "json", *more).stdout)["probes"][0]["measured"]
        for more in ([], [], ["--fresh"])
    )
    assert ["remembered" in measured for measured in (first, second, third)] == [False, True, False]
    assert first["rows"] == second["rows"]


@pytest.mark.stack
def test_a_healthy_probe_passes_and_its_time_is_told(run: Run, stack: Path) -> None:
    done = run("cross_entropy")
    assert done.returncode == 0
    line, summary = done.stdout.splitlines()
    assert re.match(r"pass +cross_entropy +\d+\.\d s  .*bound 1, fails above 4", line)
    assert re.match(r"1 pass; \d+\.\d s in total \(\d+% importing, 0% compiling, \d+% measuring\)", summary)
    assert done.stderr == "probing cross_entropy\n"
    required = run("cross_entropy", "labels_masked", "--require-probe")
    assert (required.returncode, run("cross_entropy", "labels_masked").returncode) == (4, 0)


@posix
@pytest.mark.stack
def test_a_terminal_shows_a_bar_with_the_probe_and_the_time_left(stack: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "compatcheck", "probe", "cross_entropy"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=theirs, env=environ)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    assert process.wait() == 0
    assert re.search(rb"about \d+ s left, cross_entropy: \w", shown)
