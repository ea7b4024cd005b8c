"""The suite for machines with a GPU, tried without one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from compatcheck import probes
from tools import gpu_suite

SUITE = Path(gpu_suite.__file__)


@pytest.mark.stack
def test_the_suite_needs_nothing_but_the_standard_library_and_the_target(stack: Path, tmp_path: Path) -> None:
    """Without site packages in the suite's own process; the children have them."""
    out = tmp_path / "record.json"
    command = [
        str(stack),
        "-I",
        "-S",
        str(SUITE),
        "--device",
        "cpu",
        "--only",
        "adamw",
        "--limit",
        "600",
        "--out",
        str(out),
        "--python",
        os.path.relpath(stack, tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(out.read_text(encoding="utf-8"))
    (adamw,) = record["probes"]
    assert (adamw["probe"], adamw["outcome"]) == ("adamw", "pass")
    assert adamw["worst_rows"][0]["theta"] < 1
    assert record["versions"]["torch"] == record["hardware"]["torch"]
    assert {path.name for path in tmp_path.iterdir()} == {"record.json"}


@pytest.mark.stack
def test_without_a_gpu_the_suite_says_so(stack: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = subprocess.run([str(stack), str(SUITE)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, "no CUDA device is usable" in done.stdout) == (3, True), done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


def test_what_a_gpu_alone_decides_comes_first_and_every_probe_comes() -> None:
    trials = gpu_suite.trials("cuda")
    assert [trial.probe for trial in trials[:4]] == ["attention_masked"] * 3 + ["matmul"]
    assert {trial.probe for trial in trials} == set(probes.names())
    profiles = [probes.card(trial.probe).profile for trial in trials[len(gpu_suite.FIRST) : -len(gpu_suite.LAST)]]
    assert profiles == sorted(profiles, key=probes.PROFILES.index)


def test_the_record_keeps_the_worst_row_of_each_variant() -> None:
    rows = [
        {"variant": "a", "dtype": "float32", "theta": 0.1, "rho": 1.0},
        {"variant": "a", "dtype": "float32", "theta": "inf", "rho": "inf"},
        {"variant": "b", "dtype": "float32", "error": "RuntimeError: no"},
        {"variant": "c", "dtype": "float32", "theta": 0.5, "rho": 1.0},
    ]
    assert [row["variant"] for row in gpu_suite.worst_rows(rows)] == ["a", "b", "c"]
    assert gpu_suite.worst_rows(rows)[0]["theta"] == "inf"
