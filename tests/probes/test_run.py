"""A child for every way of dying, run for real."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compatcheck.errors import CompatcheckError, InputError
from compatcheck.model import Outcome, ProbeResult, Target
from compatcheck.probes import _process, _run, describe, names, run, run_all
from tests.probes.conftest import target

SAMPLES = Path(__file__).parent / "samples"


def attempt(name: str, here: Target, limit: float = 20.0, **request: Any) -> ProbeResult:
    trace = _process.attempt(SAMPLES / f"{name}.py", here, request, limit)
    return _run.judge(name, trace, passing)


def passing(measured: Mapping[str, Any]) -> tuple[Outcome, str]:
    return "pass", "measured"


def test_rows_and_facts_arrive(here: Target) -> None:
    """Non-finite numbers come as strings, files as absolute paths, rows beside the returned facts."""
    result = attempt("answers", here, seed=5, some_file="samples.jsonl")
    assert result.outcome == "pass"
    assert result.measured["rows"] == [{"number": 0, "theta": "inf"}, {"number": 1, "theta": "inf"}]
    assert result.measured["seed"] == 5
    assert result.measured["unit"] == 2.0**-24
    assert result.measured["path"] == os.path.abspath("samples.jsonl")
    assert result.measured["child"]["python"].startswith("3.")


def test_stages_are_heard_in_order(here: Target) -> None:
    heard: list[str] = []
    _process.attempt(SAMPLES / "answers.py", here, {}, 20, lambda name, seconds: heard.append(name))
    assert heard == ["measure", "row 0", "row 1"]


def test_an_exception_is_a_crash_with_its_place(here: Target) -> None:
    result = attempt("raises", here)
    assert result.outcome == "crash"
    assert result.why.startswith("ValueError: first line; last stage 'about to raise'")
    assert result.measured["rows"] == [{"number": 0}]
    assert any("raise ValueError" in line for line in result.measured["child"]["traceback"])


@pytest.mark.parametrize(
    ("sample", "why"),
    [
        ("broken_import", "no_such_module_at_all is not installed"),
        ("too_old", "is outside >=99.0"),
        ("out_of_memory", "not enough memory is free"),
    ],
)
def test_what_cannot_run_is_skipped_with_the_reason(here: Target, sample: str, why: str) -> None:
    result = attempt(sample, here)
    assert result.outcome == "skip"
    assert why in result.why


def test_a_segfault_names_the_signal_and_the_place_and_keeps_the_rows(here: Target) -> None:
    result = attempt("segfault", here)
    assert result.outcome == "crash"
    assert result.why.startswith("ended by SIGSEGV; last stage 'reading'")
    assert result.measured["rows"] == [{"number": 0}]


def test_a_silent_exit_names_status_and_last_words(here: Target) -> None:
    result = attempt("leaves", here)
    assert result.outcome == "crash"
    assert "exit status 7" in result.why
    assert result.why.endswith("stderr ends: the last words")


def test_a_hang_is_a_timeout_and_leaves_no_process(here: Target) -> None:
    started = time.monotonic()
    result = attempt("hangs", here, limit=1.5)
    assert time.monotonic() - started < 1.5 + 2 * _process.GRACE_SECONDS + 2
    assert result.outcome == "timeout"
    assert result.why.startswith("no result within 1.5 s; last stage 'sleeping'")
    assert not alive(result.measured["rows"][0]["pid"])


def test_a_child_ends_itself_when_nobody_is_left_to_end_it(here: Target, tmp_path: Path) -> None:
    order = {"probe": str(SAMPLES / "hangs.py")}
    (tmp_path / "request.json").write_text(json.dumps({**order, "request": {}, "limit": 0.5 - 5.0}), encoding="utf-8")
    command = [here.executable, "-B", str(_process.FOLDER / "_child.py"), str(tmp_path)]
    with open(tmp_path / "stderr", "w", encoding="utf-8") as errors:
        orphan = subprocess.run(command, stdout=errors, stderr=errors, timeout=20, check=False)
    os.kill(json.loads((tmp_path / "events.jsonl").read_text().splitlines()[2])["row"]["pid"], signal.SIGKILL)
    assert orphan.returncode == 1
    assert "Timeout" in (tmp_path / "stderr").read_text(encoding="utf-8")


def test_a_flood_of_output_is_drained_and_bounded(here: Target) -> None:
    trace = _process.attempt(SAMPLES / "floods.py", here, {}, 60)
    assert trace.last("result")["measured"] == {"written": 64}
    assert len(trace.stderr) <= _process.TAIL_BYTES


def test_a_result_counts_though_the_child_aborts_afterwards(here: Target) -> None:
    result = attempt("aborts_after_answer", here)
    assert result.outcome == "pass"
    assert result.measured["child"]["status"] == -signal.SIGABRT


def test_the_child_stands_alone(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees neither our folder nor a launcher's variables, but the switches that choose kernels."""
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")
    seen = attempt("surroundings", here).measured
    environ = seen["environ"]
    assert str(_process.FOLDER) not in seen["path"]
    assert "WORLD_SIZE" not in environ and "ACCELERATE_USE_DEEPSPEED" not in environ
    assert environ["TORCH_CUDNN_SDPA_DEPRIORITIZED"] == environ["HF_HUB_OFFLINE"] == "1"
    assert environ["TORCH_EXTENSIONS_DIR"].startswith(os.path.realpath(seen["folder"]))
    assert seen["group"]
    assert not os.path.exists(seen["folder"])


def test_an_interpreter_that_is_not_there_is_a_user_error() -> None:
    with pytest.raises(InputError, match="run a probe with /nowhere/python: No such file.*--python"):
        attempt("answers", target("/nowhere/python"))


def test_a_temporary_folder_that_cannot_be_written_is_one_line(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(CompatcheckError, match="prepare probe in /nowhere: No such file.*set TMPDIR"):
        attempt("answers", here)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_text(*args: Any, **options: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(CompatcheckError, match="No space left on device; free some space or set TMPDIR"):
        _process._write(tmp_path / "request.json", "{}")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_ends_the_child(here: Target) -> None:
    def interrupt(name: str, seconds: float) -> None:
        if name == "sleeping":
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _process.attempt(SAMPLES / "hangs.py", here, {}, 20, interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    time.sleep(0.1)
    assert not [line for line in processes() if "compatcheck-probe-" in line]


def test_the_door_lists_and_describes_every_probe() -> None:
    known = ("attention_masked", "chat_template", "gradient_accumulation", "labels_masked", "low_precision_trainables")
    assert names() == known
    for name in names():
        title, body = describe(name)
        assert title.endswith(".") and len(title) < 80
        assert "A failure means" in body or "it fails where" in body
        assert "Request:" in body


@pytest.mark.parametrize(
    ("outcomes", "expected", "why"),
    [
        (["pass"], "pass", "first"),
        (["fail", "fail"], "fail", "first"),
        (["fail", "pass"], "watch", "flaky: failed with seed 3, passed with seed 4; first"),
        (["fail", "watch"], "watch", "flaky: failed with seed 3, came close to the bound with seed 4; first"),
        (["fail", "timeout"], "timeout", "failed with seed 3 (first), then: second"),
        (["watch"], "watch", "first"),
        (["crash"], "crash", "first"),
    ],
)
def test_a_failure_must_repeat_with_another_seed(
    outcomes: list[Outcome], expected: str, why: str, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = []

    def once(name: str, target: Target, request: Mapping[str, Any], *rest: Any) -> ProbeResult:
        seeds.append(request["seed"])
        return ProbeResult(name, outcomes[len(seeds) - 1], ("first", "second")[len(seeds) - 1])

    monkeypatch.setattr(_run, "_run_once", once)
    result = run("labels_masked", here, {"seed": 3})
    assert (result.outcome, result.why) == (expected, why)
    assert seeds == [3, 4][: len(outcomes)]


def test_a_spent_budget_skips_what_has_not_begun(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def once(name: str, *rest: Any) -> ProbeResult:
        time.sleep(0.05)
        return ProbeResult(name, "pass", "fine")

    monkeypatch.setattr(_run, "_run_once", once)
    results = run_all([("attention_masked", {}), ("labels_masked", {})], here, 0.01)
    assert [result.outcome for result in results] == ["pass", "skip"]
    assert results[1].why == "budget of 0.01 s spent"


def alive(pid: int) -> bool:
    """Whether the process still runs; a zombie nobody has collected does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def processes() -> list[str]:
    """The command lines of every process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text(encoding="utf-8", errors="replace").replace("\0", " "))
        except OSError:
            continue
    return found
