"""When training is taken to run on several ranks."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.environment import Environment
from compatcheck.matrix.traits._ranks import several_ranks


@pytest.mark.parametrize(
    ("facts", "holds"),
    [
        ({}, None),
        ({"training": {"deepspeed": {"overlap_comm": True}}}, True),
        ({"training": {"deepspeed": {"overlap_comm": True}, "world_size": 1}}, False),
        ({"training": {"deepspeed": {"zero_stage": 2}}}, True),
        ({"training": {"deepspeed": None}}, False),
        ({"training": {"deepspeed": {"zero_stage": 2}}, "gpus": [{"name": "A100"}]}, None),
        ({"training": {"deepspeed": {"zero_stage": 2}, "several_ranks": True}, "gpus": [{"name": "A100"}]}, True),
        ({"distributions": {"deepspeed": "0.16.0"}}, True),
    ],
)
def test_a_setting_of_deepspeed_means_several_ranks(facts: dict[str, Any], holds: bool | None) -> None:
    assert several_ranks(Environment(facts)).holds is holds
