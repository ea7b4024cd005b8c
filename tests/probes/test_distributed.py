"""Probes that start processes of their own: what the ranks answer, how they end, and what DDP faults look like."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import _criterion, _process, _units
from compatcheck.probes.distributed import _ranks
from tests.probes.conftest import Plant

pytestmark = [pytest.mark.stack, pytest.mark.slow]

SAMPLE = Path(__file__).parent / "samples" / "ranks.py"
PROBES = (
    *("all_reduce", "ddp_gradients", "trainer_ranks", "zero_gradients", "zero_backward_passes"),
    *("zero_default_clipping", "zero_init"),
)

IN_EVERY_PROCESS = """
    import os, sys, tempfile
    folder = tempfile.mkdtemp()
    with open(folder + "/sitecustomize.py", "w") as stream:
        stream.write({code!r})
    os.environ["PYTHONPATH"] = folder
"""
SUM_TOO_LARGE = """
import torch.distributed
original = torch.distributed.all_reduce
def all_reduce(tensor, *arguments, **options):
    original(tensor, *arguments, **options)
    tensor[-1] *= 1.001
torch.distributed.all_reduce = all_reduce
"""
NOT_AVERAGED = """
import torch
parallel = torch.nn.parallel.DistributedDataParallel
original = parallel.__init__
def total(state, bucket):
    work = torch.distributed.all_reduce(bucket.buffer(), async_op=True).get_future()
    return work.then(lambda done: done.value()[0])
def init(self, *arguments, **options):
    original(self, *arguments, **options)
    self.register_comm_hook(None, total)
parallel.__init__ = init
"""


def measured(name: str, target: Target, request: dict[str, Any]) -> tuple[str, str, list[dict[str, Any]]]:
    """One child, judged once; a failure that has to repeat would cost twice the time."""
    probe = _units.unit(name)
    trace = _process.attempt(_units.paths()[name], target, {"device": "cpu", **request}, probe.TIMEOUT)
    assert trace.last("result"), (trace.events[-1], trace.stderr)
    numbers = trace.last("result")["measured"]
    return (*probe.judge(numbers), numbers["rows"])


def test_ranks_answer_and_a_failed_case_costs_only_itself(stack: Target, tmp_path: Path) -> None:
    order = {"do": ["fine", "raise", "after", "die", "disagree"], "folder": str(tmp_path)}
    trace = _process.attempt(SAMPLE, stack, order, 120)
    rows = [row for row in trace.last("result")["measured"]["rows"] if not row.get("control")]
    by_case = {row["case"]: row for row in rows}
    assert by_case["fine"]["sum"] == by_case["after"]["sum"] == 2.0
    assert by_case["raise"]["error"] == "ValueError: planted"
    assert by_case["die"]["error"].startswith("no answer from rank 1, which ended with status 7")
    assert by_case["die"]["recorded"] == _ranks.UNANSWERED
    assert by_case["disagree"]["tensor"] == "agreement of the ranks"
    assert not _alive(tmp_path)


def test_an_error_where_the_cpu_stands_in_for_a_gpu_is_recorded(stack: Target, tmp_path: Path) -> None:
    trace = _process.attempt(SAMPLE, stack, {"do": ["raise"], "folder": str(tmp_path), "stands_in": True}, 60)
    assert trace.last("result")["measured"]["rows"][0]["recorded"] == "raised on the CPU, not on a GPU"


def test_a_hang_is_no_verdict(stack: Target, tmp_path: Path) -> None:
    order = {"do": ["fine", "hang"], "folder": str(tmp_path), "case_seconds": 3.0}
    result = _process.attempt(SAMPLE, stack, order, 120).last("result")["measured"]
    assert _ranks.judge(result) == ("watch", "no answer within 3 s (hang, ranks)")
    assert not _alive(tmp_path)


def test_ctrl_c_leaves_no_rank_behind(stack: Target, tmp_path: Path) -> None:
    def interrupt(stage: str, seconds: float) -> None:
        if stage.startswith("hang"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _process.attempt(SAMPLE, stack, {"do": ["fine", "hang"], "folder": str(tmp_path)}, 120, interrupt)
    assert not _alive(tmp_path)


def test_sums_of_this_stack_are_right(stack: Target) -> None:
    outcome, why, rows = measured("all_reduce", stack, {})
    assert outcome == "pass", why
    assert {row["dtype"] for row in rows} == {"float32", "bfloat16", "float16"}


def test_a_sum_with_one_element_off_is_convicted(plant: Plant) -> None:
    outcome, why, _ = measured("all_reduce", plant(IN_EVERY_PROCESS.format(code=SUM_TOO_LARGE)), {})
    assert (outcome, "passing there: one process" in why) == ("fail", True), why


def test_ddp_of_this_stack_is_right(stack: Target) -> None:
    outcome, why, rows = measured("ddp_gradients", stack, {})
    assert outcome == "pass", why
    assert {row["variant"].split(",")[1].strip() for row in rows if "," in row["variant"]} >= {"no_sync", "join"}


def test_gradients_that_are_not_averaged_are_convicted(plant: Plant) -> None:
    outcome, why, rows = measured(
        "ddp_gradients", plant(IN_EVERY_PROCESS.format(code=NOT_AVERAGED)), {"dtype": "float32"}
    )
    assert (outcome, "passing there: one process" in why) == ("fail", True), why
    assert {round(row["ratio"], 3) for row in rows if row["variant"] == "DDP, unchanged"} == {2.0}


def test_the_trainer_on_two_ranks_takes_the_step_of_the_whole_batch(stack: Target) -> None:
    outcome, why, rows = measured("trainer_ranks", stack, {})
    assert outcome == "pass", why
    by_design = [row for row in rows if "by_design" in row]
    assert {row["case"].rpartition(",")[0] for row in by_design} == {"no_kwargs, unequal lengths"}
    assert all(row["difference"] > 0.1 for row in by_design)


@pytest.mark.parametrize("name", ["all_reduce", "ddp_gradients", "trainer_ranks"])
def test_one_process_has_nothing_to_exchange(stack: Target, name: str) -> None:
    probe = _units.unit(name)
    trace = _process.attempt(_units.paths()[name], stack, {"training": {"world_size": 1}}, 60)
    assert probe.judge(trace.last("result")["measured"]) == ("skip", "the training runs in one process")


def test_two_ranks_cannot_share_a_gpu_that_is_not_there(stack: Target) -> None:
    trace = _process.attempt(_units.paths()["all_reduce"], stack, {"device": "cuda"}, 60)
    measured = trace.last("result")["measured"]
    assert "rows" in measured and measured["rows"] or "needs one GPU for each" in measured["unsupported"]


@pytest.mark.parametrize("name", PROBES)
def test_a_control_alone_convicts_nobody(name: str) -> None:
    probe = _units.unit(name)
    fine = {"case": "c", "dtype": "float32", "tensor": "t", "theta": 0.1, "rho": 1.0, "nonfinite": 0}
    off = {**fine, "variant": "v", "theta": 1e5}
    control = {**fine, "variant": "one process", "control": True}
    assert probe.judge({"rows": [control, off]})[0] == "fail"
    assert probe.judge({"rows": [control, {**off, "recorded": "no matter"}]})[0] == "skip"
    assert probe.judge({"rows": [{**control, "theta": 1e5}, off]})[0] == "watch"
    assert _criterion.verdict(off["theta"]) == "fail"


def _alive(folder: Path) -> list[int]:
    deadline = time.monotonic() + 3
    while True:
        left = [int(pid) for pid in set((folder / "pids").read_text().split()) if os.path.exists(f"/proc/{pid}")]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)
