"""Padding-free training that trl turns on for packed samples."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment

PACKED = {"framework": "trl", "objective": "sft", "packing": True}


def padding_free(version: str, given: tuple[str, ...] = (), **training: Any) -> object:
    stated = {**PACKED, "calls": {"trl.SFTConfig": ["packing", *given]}, **training}
    environment = Environment({"distributions": {"trl": version}, "training": stated})
    return matrix.infer(matrix.load(), environment).view.get("training.padding_free")


@pytest.mark.parametrize("version", ["0.19.1", "0.23.0", "1.16.0"])
def test_default_strategy_trains_without_padding(version: str) -> None:
    assert padding_free(version) is True


@pytest.mark.parametrize("strategy", ["wrapped", "bfd-requeue"])
def test_other_strategies_keep_the_default(strategy: str) -> None:
    assert padding_free("0.29.1", ("packing_strategy",), packing_strategy=strategy) is False


def test_release_without_strategies_keeps_the_default() -> None:
    assert padding_free("0.18.2") is False


def test_unpacked_samples_keep_the_default() -> None:
    assert padding_free("0.20.0", packing=False) is False


def test_stated_padding_stays() -> None:
    assert padding_free("0.20.0", ("padding_free",), padding_free=False) is False
