"""The same step twice is the same in every bit, or the first that differs is named."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.probes.training import step_replay
from tests.probes.inside import measured
from tools.faults import replays

pytestmark = [pytest.mark.stack, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _with_transformers() -> None:
    pytest.importorskip("transformers")


@pytest.mark.parametrize("training", [{"dtype": "float32"}, {"lora": {"r": 4}, "gradient_checkpointing": True}])
def test_a_healthy_step_repeats(training: dict[str, Any]) -> None:
    if "lora" in training:
        pytest.importorskip("peft")
    found = measured(step_replay, training=training, replays=2)
    outcome, why = step_replay.judge(found)
    assert outcome == "pass", why
    assert all(row["compared"] > 40 for row in found["rows"])


def test_the_first_module_that_differs_is_named() -> None:
    dropout = next(fault for fault in replays.FAULTS if fault.name == "dropout that no seed reaches")
    with dropout.plant():  # type: ignore[misc]
        outcome, why = step_replay.judge(measured(step_replay, replays=2, dtype="float32"))
    assert outcome == "fail"
    assert why.startswith(
        "the output of model.layers.0.mlp, step 1 is the first value that differs between two replays"
    )


def test_documented_nondeterminism_is_the_settings() -> None:
    with replays.FAULTS[-1].plant():  # type: ignore[misc]
        found = measured(step_replay, replays=2, dtype="float32")
    outcome, why = step_replay.judge(found)
    assert outcome == "watch"
    assert "gradient of model.embed_tokens.weight" in why
    assert "as the setting torch.use_deterministic_algorithms(False) permits" in why


def test_the_mode_of_the_process_is_left_as_it_was() -> None:
    torch = pytest.importorskip("torch")
    with step_replay._deterministic():
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
