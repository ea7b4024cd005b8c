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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.probes import _forked_children, _process, _run, _units, describe, names, run, run_all
from compatcheck.probes._process import OnStage
from compatcheck.probes._time_left import Pace
from compatcheck.results.findings import Outcome, ProbeResult
from tests.probes.conftest import target

SAMPLES = Path(__file__).parent / "samples"
linux = pytest.mark.skipif(sys.platform != "linux", reason="children are forked on Linux alone")

Attempt = Callable[..., ProbeResult]


@pytest.fixture(params=["new process", pytest.param("fork", marks=linux), pytest.param("new from parent", marks=linux)])
def attempt(request: pytest.FixtureRequest, here: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attempt]:
    """Runs a sample in a new process, in a fork of a warm parent, or in a new process that the parent starts."""
    monkeypatch.setattr(_forked_children, "SHARED", ("colorsys",))
    needs = unit("colorsys") if request.param == "fork" else unit()
    with _forked_children.Children(here) as children:

        def once(name: str, limit: float = 20.0, on_stage: OnStage | None = None, **asked: Any) -> ProbeResult:
            probe = SAMPLES / f"{name}.py"
            if request.param == "new process":
                trace = _process.attempt(probe, here, asked, limit, on_stage)
            else:
                trace = children.attempt(probe, needs, asked, limit, on_stage)
            return _run.judge(name, trace, passing)

        yield once


def unit(*needs: str) -> ModuleType:
    """The constants of a probe that needs these packages."""
    made = ModuleType("unit")
    made.__dict__["NEEDS"] = dict.fromkeys(needs, ">=0")
    return made


def passing(measured: Mapping[str, Any]) -> tuple[Outcome, str]:
    return "pass", "measured"


def test_rows_and_facts_arrive(attempt: Attempt) -> None:
    """Non-finite numbers come as strings, files as absolute paths, rows beside the returned facts."""
    result = attempt("answers", seed=5, some_file="samples.jsonl")
    assert result.outcome == "pass"
    assert result.measured["rows"] == [{"number": 0, "theta": "inf"}, {"number": 1, "theta": "inf"}]
    assert result.measured["seed"] == 5
    assert result.measured["unit"] == 2.0**-24
    assert result.measured["path"] == os.path.abspath("samples.jsonl")
    assert result.measured["child"]["python"].startswith("3.")


def test_stages_are_heard_in_order(attempt: Attempt) -> None:
    heard: list[str] = []
    attempt("answers", on_stage=lambda name, seconds: heard.append(name))
    assert heard[-3:] == ["measure", "row 0", "row 1"]


def test_an_exception_is_a_crash_with_its_place(attempt: Attempt) -> None:
    result = attempt("raises")
    assert result.outcome == "crash"
    assert result.why.startswith("ValueError: first line; last stage 'about to raise'")
    assert result.measured["rows"] == [{"number": 0}]
    assert any("raise ValueError" in line for line in result.measured["child"]["traceback"])


def test_failed_precondition_is_a_failure_with_that_error(attempt: Attempt) -> None:
    result = attempt("unusable")
    assert result.outcome == "fail"
    assert result.unusable == "the Trainer cannot be built: TypeError: no argument of that name"
    assert result.why == f"{result.unusable}; differs by design by 25% (first): another meaning"


@pytest.mark.parametrize(
    ("sample", "why"),
    [
        ("broken_import", "no_such_module_at_all is not installed"),
        ("too_old", "is outside >=99.0"),
        ("out_of_memory", "not enough memory is free"),
        ("no_room", "the temporary folder is full; free some space, or set TMPDIR"),
    ],
)
def test_what_cannot_run_is_skipped_with_the_reason(attempt: Attempt, sample: str, why: str) -> None:
    result = attempt(sample)
    assert result.outcome == "skip"
    assert why in result.why


def test_a_segfault_names_the_signal_and_the_place_and_keeps_the_rows(attempt: Attempt) -> None:
    result = attempt("segfault")
    assert result.outcome == "crash"
    assert result.why.startswith("ended by SIGSEGV; last stage 'reading'")
    assert result.measured["rows"] == [{"number": 0}]


def test_a_silent_exit_names_status_and_last_words(attempt: Attempt) -> None:
    result = attempt("leaves")
    assert result.outcome == "crash"
    assert "exit status 7" in result.why
    assert result.why.endswith("stderr ends: the last words")


def test_a_hang_is_a_timeout_and_leaves_no_process(attempt: Attempt) -> None:
    started = time.monotonic()
    result = attempt("hangs", limit=3.0)
    assert time.monotonic() - started < 3 + 2 * _process.GRACE_SECONDS + 2
    assert result.outcome == "timeout"
    assert result.why.startswith("no result within 3 s; last stage 'sleeping'")
    assert gone(result.measured["rows"][0]["pid"])


@linux
def test_busy_machine_costs_no_probe_its_time(here: Target, tmp_path: Path) -> None:
    """A child that gets a third of a processor beside two rivals has its whole limit of processor time."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("processes cannot be held on one processor here")
    place = {min(os.sched_getaffinity(0))}
    spin = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"
    rivals = [subprocess.Popen([here.executable, "-c", spin.format(seconds=60)]) for _ in range(2)]
    child = subprocess.Popen([here.executable, "-c", spin.format(seconds=1.5)])
    try:
        for process in (*rivals, child):
            os.sched_setaffinity(process.pid, place)
        started = time.monotonic()
        assert _process.wait(child, _process.Events(tmp_path), 3.0, None)
        assert time.monotonic() - started > 3.0 and child.wait() == 0
    finally:
        for process in (*rivals, child):
            process.kill()
            process.wait()


def test_a_child_ends_itself_when_nobody_is_left_to_end_it(here: Target, tmp_path: Path) -> None:
    order = {"probe": str(SAMPLES / "hangs.py"), "request": {"tell_file": str(tmp_path / "pids")}, "limit": 0.5 - 5.0}
    (tmp_path / "request.json").write_text(json.dumps(order), encoding="utf-8")
    command = [here.executable, "-B", str(_units.FOLDER / "_child.py"), str(tmp_path)]
    with open(tmp_path / "stderr", "w", encoding="utf-8") as errors:
        orphan = subprocess.run(command, stdout=errors, stderr=errors, timeout=20, check=False)
    os.kill(int((tmp_path / "pids").read_text(encoding="utf-8").split()[1]), signal.SIGKILL)
    assert orphan.returncode == 1
    assert "Timeout" in (tmp_path / "stderr").read_text(encoding="utf-8")


def test_a_flood_of_output_is_drained_and_bounded(attempt: Attempt) -> None:
    assert attempt("floods", 60.0).measured["written"] == 64


def test_a_result_counts_though_the_child_aborts_afterwards(attempt: Attempt) -> None:
    result = attempt("aborts_after_answer")
    assert result.outcome == "pass"
    assert result.measured["child"]["status"] in (-signal.SIGABRT, 0)  # a fork leaves without the teardown


def test_the_child_stands_alone(monkeypatch: pytest.MonkeyPatch, attempt: Attempt) -> None:
    """It sees neither our folder nor a launcher's variables, but the switches that choose kernels."""
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")
    seen = attempt("surroundings").measured
    environ = seen["environ"]
    assert str(_units.FOLDER) not in seen["path"]
    assert "WORLD_SIZE" not in environ and "ACCELERATE_USE_DEEPSPEED" not in environ
    assert environ["TORCH_CUDNN_SDPA_DEPRIORITIZED"] == environ["HF_HUB_OFFLINE"] == "1"
    assert environ["TORCH_EXTENSIONS_DIR"].startswith(os.path.realpath(seen["folder"]))
    assert seen["group"]
    assert not os.path.exists(seen["folder"])


def test_a_relative_search_path_leads_where_it_leads_the_user(
    here: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "torch.py").write_text("raise ImportError('the torch of PYTHONPATH')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "mine")
    result = run("matmul", here, {})
    assert (result.outcome, result.why) == ("skip", "torch cannot be imported: ImportError: the torch of PYTHONPATH")


def test_an_interpreter_that_is_not_there_is_a_user_error() -> None:
    with pytest.raises(InputError, match="running a probe with /nowhere/python: No such file.*--python"):
        run("labels_masked", target("/nowhere/python"), {})


def test_a_temporary_folder_that_cannot_be_written_is_one_line(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(CompatcheckError, match="preparing a probe in /nowhere: No such file.*set TMPDIR"):
        run("labels_masked", here, {})


def test_no_temporary_folder_at_all_is_one_line(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)
    with pytest.raises(CompatcheckError, match="preparing a probe in the temporary folder: No usable.*set TMPDIR"):
        run("labels_masked", here, {})


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_text(*args: Any, **options: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(CompatcheckError, match="No space left on device; free some space, or set TMPDIR"):
        _process._write(tmp_path / "request.json", "{}")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_ends_the_child_and_what_it_started(attempt: Attempt, tmp_path: Path) -> None:
    def interrupt(name: str, seconds: float) -> None:
        if name == "sleeping":
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            attempt("hangs", on_stage=interrupt, tell_file=str(tmp_path / "pids"))
    finally:
        signal.signal(signal.SIGINT, before)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text(encoding="utf-8").split()]
    assert len(pids) == 2 and all(map(gone, pids))


def test_the_door_lists_and_describes_every_probe() -> None:
    assert {"attention_masked", "chat_template", "gradient_accumulation"} < set(names())
    for name in names():
        title, body = describe(name)
        assert title.endswith(".") and len(title) < 100
        assert "fail" in body or "convict" in body
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

    def once(children: object, name: str, request: Mapping[str, Any], *rest: Any) -> ProbeResult:
        seeds.append(request["seed"])
        return ProbeResult(name, outcomes[len(seeds) - 1], ("first", "second")[len(seeds) - 1])

    monkeypatch.setattr(_run, "_run_once", once)
    result = run("attention_masked", here, {"seed": 3})
    assert (result.outcome, result.why) == (expected, why)
    assert seeds == [3, 4][: len(outcomes)]


def test_a_failure_that_no_seed_can_change_is_not_repeated(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    def once(children: object, name: str, request: Mapping[str, Any], *rest: Any) -> ProbeResult:
        seeds.append(request["seed"])
        return ProbeResult(name, "fail", "first")

    monkeypatch.setattr(_run, "_run_once", once)
    assert (run("labels_masked", here, {}).outcome, seeds) == ("fail", [0])


def test_the_seconds_left_shrink_with_what_is_done_and_follow_what_was_seen() -> None:
    units = [unit(), unit(), unit()]
    for each in units:
        each.__dict__["SECONDS"] = 10.0
    pace = Pace(units)
    heard: list[float] = []
    tell = pace.listener("first", lambda name, stage, left: heard.append(left))
    assert tell is not None
    tell("measure", 0.0)
    assert 33 < heard[0] <= 34
    pace.done(units[0], 28.0)
    assert 34 < pace.seconds_left() < 37
    pace.done(units[1], 0.0)
    pace.done(units[2], 20.0)
    assert pace.seconds_left() == 0


def test_a_spent_budget_skips_what_has_not_begun(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def once(children: object, name: str, *rest: Any) -> ProbeResult:
        time.sleep(0.05)
        return ProbeResult(name, "pass", "fine")

    monkeypatch.setattr(_run, "_run_once", once)
    results = run_all([("attention_masked", {}), ("labels_masked", {})], here, 0.01)
    assert [result.outcome for result in results] == ["pass", "skip"]
    assert results[1].why == "not run: budget of 0.01 s spent"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_keeps_what_has_finished(here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def once(children: object, name: str, *rest: Any) -> ProbeResult:
        if name == "labels_masked":
            raise KeyboardInterrupt
        return ProbeResult(name, "pass", "fine")

    monkeypatch.setattr(_run, "_run_once", once)
    trials = [("matmul", {}), ("labels_masked", {}), ("softmax", {})]
    with pytest.raises(KeyboardInterrupt):
        run_all(trials, here)
    results = run_all(trials, here, partial=True)
    assert [(result.outcome, result.interrupted) for result in results] == [("pass", False), *[("skip", True)] * 2]
    assert results[1].why == results[2].why == "not run: interrupted"


def gone(pid: int) -> bool:
    """Whether the process ends within the moments that the kernel of a busy machine may need."""
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def alive(pid: int) -> bool:
    """Whether the process still runs; a zombie nobody has collected does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
