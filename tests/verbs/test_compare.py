"""`compatcheck compare` as people type it; the slow half builds real stacks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from uv import find_uv_bin

from ..conftest import run_command

OLD, NEW = (
    "torch==2.13.0\ntransformers==4.48.0\naccelerate==1.2.1\n",
    "torch==2.13.0\ntransformers==4.48.1\naccelerate==1.3.0\n",
)
MODEL = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 256,
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch.txt", "nosuch.txt"], "nosuch"),
        ([sys.executable], "NEW"),
        (["empty.txt", "empty.txt"], "torch"),
        (["snapshot.json", "snapshot.json"], "torch or transformers"),
        (["broken.json", "broken.json"], "JSON"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("", "utf-8")
    (tmp_path / "snapshot.json").write_text('{"schema_version": 1, "distributions": {"peft": "0.17.1"}}', "utf-8")
    (tmp_path / "broken.json").write_text("{", "utf-8")
    done = run_command(sys.executable, "compare", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_interpreter_without_torch_is_a_usage_error(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = run_command(sys.executable, "compare", str(bare), str(bare), cwd=tmp_path)
    assert done.returncode == 2 and "the environment lacks torch or transformers" in done.stderr, done.stderr


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    (tmp_path / "old.txt").write_text(OLD, "utf-8")
    (tmp_path / "new.txt").write_text(NEW, "utf-8")
    (tmp_path / "config.json").write_text(json.dumps(MODEL), "utf-8")
    return tmp_path


@pytest.mark.network
def test_pins_that_contradict_each_other_are_a_usage_error(stacks: Path) -> None:
    (stacks / "old.txt").write_text(OLD + "tokenizers==0.19.1\n", "utf-8")
    done = run_command(sys.executable, "compare", "old.txt", "new.txt", cwd=stacks)
    assert done.returncode == 2 and "old.txt:4 has the requirement tokenizers==0.19.1" in done.stderr, done.stderr


@pytest.mark.network
def test_release_that_repairs_accumulation_is_named(stacks: Path) -> None:
    """transformers 4.48.0 multiplies accumulated gradients of a Llama, 4.48.1 does not: CC-2024-0040."""
    command = ["compare", "old.txt", "new.txt", "--model", "config.json", "--draft", "entry.toml"]
    done = run_command(sys.executable, *command, "--format", "html", "-o", "page.html", cwd=stacks)
    assert done.returncode == 1, done.stderr
    page = (stacks / "page.html").read_text("utf-8")
    assert "transformers 4.48.1 changes the result; 4.48.0 gives the same result as OLD" in page
    picture = page[page.index('<svg class="curves"') : page.index("</svg>", page.index('<svg class="curves"')) + 6]
    assert len([each for each in ElementTree.fromstring(picture).iter() if each.tag == "polyline"]) >= 2
    assert 'distributions.transformers = ">=4.48.1"' in (stacks / "entry.toml").read_text("utf-8")


@pytest.mark.network
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_interrupted_or_killed_leaves_nothing_behind(stacks: Path, number: signal.Signals, status: int) -> None:
    kept = subprocess.run([find_uv_bin(), "cache", "dir"], check=True, capture_output=True, text=True).stdout.strip()
    environ = {**os.environ, "XDG_CACHE_HOME": str(stacks), "TMPDIR": str(stacks), "UV_CACHE_DIR": kept}
    command = [sys.executable, "-m", "compatcheck", "compare", "old.txt", "new.txt"]
    with subprocess.Popen(command, cwd=stacks, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("probing"):
                break
        time.sleep(1)
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=60)
    assert process.returncode == status
    until = time.monotonic() + 30
    while left := [path for under in (stacks, stacks / "compatcheck") for path in under.glob("compatcheck-*")]:
        assert time.monotonic() < until, left
        time.sleep(0.2)
