"""Packages that a report leaves out and that must be there."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.pipelines.check import check


def implied(known: matrix.Matrix, **facts: Any) -> Any:
    return matrix.infer(known, Environment(facts)).inferred.required


def test_what_a_release_demands_is_there_in_that_range(known: matrix.Matrix) -> None:
    found = implied(known, report={}, distributions={"accelerate": "0.33.0", "trl": None})
    assert found == {"numpy": "<2.0.0,>=1.17", "safetensors": ">=0.3.1", "torch": ">=1.10.0"}


def test_training_needs_torch_and_the_trainer_accelerate(known: matrix.Matrix) -> None:
    assert implied(known, report={}, training={"method": "lora"}) == {"torch": ""}
    assert implied(known, report={}, training={"framework": "transformers"}) == {"torch": "", "accelerate": ""}
    assert implied(known, report={}, distributions={"torch": "2.5.1"}, training={"method": "full"}) == {}


@pytest.mark.parametrize(
    "facts",
    [
        {"distributions": {"accelerate": "0.33.0"}},
        {"report": {}, "distributions": {"accelerate": "0.33.0"}, "distributions_complete": True},
        {"report": {}, "distributions": {"accelerate": "0.33.0.dev0"}},
    ],
)
def test_nothing_is_implied_beside_a_complete_list_or_by_what_is_no_release(
    known: matrix.Matrix, facts: dict[str, Any]
) -> None:
    assert not implied(known, **facts)


def test_what_is_implied_makes_an_entry_possible_that_the_day_speaks_for(known: matrix.Matrix) -> None:
    """The Trainer of transformers 4.39 passes accelerate an argument that 1.0 took out in October 2024."""
    stated = {"distributions": {"transformers": "4.39.3"}, "training": {"framework": "transformers"}}
    for day, told in (("2024-11-12", True), ("2024-04-12", False)):
        found = check(Environment({**stated, "report": {"date": day}}), known).findings
        assert any("distributions.accelerate" in each.missing for each in found) is told


def test_a_package_of_unknown_version_brings_what_its_newest_release_demands(known: matrix.Matrix) -> None:
    found = implied(known, report={}, distribution_ranges={"peft": ""})
    assert {"torch", "accelerate"} <= found.keys() and set(found.values()) == {""}


def test_unsloth_comes_with_unsloth_zoo(known: matrix.Matrix) -> None:
    assert implied(known, report={}, training={"unsloth": True})["unsloth-zoo"] == ""
