"""Mixture-of-experts models compute the papers' formula; what does not is named."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.probes.training import moe_routing
from tests.probes.inside import measured

pytestmark = [pytest.mark.stack, pytest.mark.slow]

ACCUMULATED = {"training": {"gradient_accumulation_steps": 4}}
MIXTRAL = {"config": moe_routing.FAMILIES[0]}


@pytest.fixture(scope="module")
def healthy() -> dict[str, Any]:
    pytest.importorskip("transformers")
    return measured(moe_routing)


def test_the_formula_is_met(healthy: dict[str, Any]) -> None:
    outcome, why = moe_routing.judge(healthy)
    assert outcome == "pass", why
    assert healthy["skipped"] == {}
    assert {"mixtral, padded left", "qwen3_moe, experts"} <= {row["case"] for row in healthy["rows"]}


def test_implementations_of_experts_agree(healthy: dict[str, Any]) -> None:
    found = {(row["variant"], row["dtype"]) for row in healthy["rows"] if row["case"] == "mixtral, experts"}
    assert {("grouped_mm", "bfloat16"), ("batched_mm", "float32"), ("eager", "float32")} <= found


def test_accumulation_multiplies_the_auxiliary_loss(healthy: dict[str, Any]) -> None:
    """transformers 5.24 adds it whole to the loss of each micro-batch, which nobody divides."""
    rows = [row for row in healthy["rows"] if "ratio" in row]
    assert [round(row["ratio"], 3) for row in rows] == [4.0, 4.0, 4.0]
    assert all("recorded" in row for row in rows)
    outcome, why = moe_routing.judge(measured(moe_routing, **ACCUMULATED, **MIXTRAL))
    assert outcome == "fail" and "the auxiliary loss is counted 4 times in a step of 4 micro-batches" in why


def test_dense_models_are_skipped() -> None:
    pytest.importorskip("transformers")
    found = measured(moe_routing, config={"model_type": "llama"})
    assert moe_routing.judge(found) == ("skip", "the model has no experts to route to")


def test_routers_of_another_kind_are_skipped() -> None:
    pytest.importorskip("transformers")
    config = {"model_type": "deepseek_v3", "n_routed_experts": 8, "num_experts_per_tok": 2}
    outcome, why = moe_routing.judge(measured(moe_routing, config=config))
    assert (outcome, why) == ("skip", "deepseek_v3: this probe does not support the router of this model")
