"""The dtype of reductions between ranks is what is asked, and what is ignored is named."""

from __future__ import annotations

import pytest

from compatcheck.environment import Target
from compatcheck.probes.distributed import reduction_dtype
from tests.probes.conftest import Plant
from tests.probes.test_distributed import IN_EVERY_PROCESS, measured
from tools.faults.rank_reductions import HOOK_IGNORED

pytestmark = [pytest.mark.stack, pytest.mark.slow]


def test_each_reduction_runs_in_the_dtype_that_is_asked(stack: Target) -> None:
    outcome, why, rows = measured("reduction_dtype", stack, {"ways": ["ddp", "fsdp2"]})
    assert outcome == "pass", why
    judged = {row["variant"]: row for row in rows if not row.get("control") and "recorded" not in row}
    assert judged["DDP, weights in bfloat16"]["reduced_in"] == ["bfloat16"]
    assert judged["DDP, weights in float32"]["reduced_in"] == ["float32"]
    hooked = judged.get("DDP, bf16_compress_hook")  # builds of torch without CUDA refuse it
    assert hooked is None or hooked["reduced_in"] == ["bfloat16"]
    assert hooked is None or hooked["error_share"] > 100 * judged["DDP, weights in float32"]["error_share"]


def test_an_ignored_hook_is_named(plant: Plant) -> None:
    code = IN_EVERY_PROCESS.format(code="import torch.nn.parallel.distributed\n" + HOOK_IGNORED)
    outcome, why, _ = measured("reduction_dtype", plant(code), {"ways": ["ddp"]})
    assert outcome == "fail"
    assert "gradients are reduced in float32 instead of the requested bfloat16" in why
    assert "DDP, bf16_compress_hook" in why


def test_training_in_one_process_is_skipped() -> None:
    pytest.importorskip("torch")
    request = {"seed": 0, "device": "cpu", "training": {"world_size": 1}}
    rows = reduction_dtype.measure(request, lambda stage: None)
    with pytest.raises(StopIteration) as end:
        next(rows)
    assert reduction_dtype.judge(end.value.value) == ("skip", "the training runs in one process")
