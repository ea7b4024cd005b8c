"""Whether torch has code for the GPUs, where the CUDA of its build is known and where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.traits import torch_lacks_gpu_architecture

H100 = {"name": "NVIDIA H100", "compute_capability": "9.0"}
RTX_5090 = {"name": "NVIDIA GeForce RTX 5090", "compute_capability": "12.0"}
V100 = {"name": "Tesla V100", "compute_capability": "7.0"}


@pytest.mark.parametrize(
    ("torch", "runtime", "gpus", "holds", "told", "pins"),
    [
        ("1.13.1", None, [H100], True, "has no build for this GPU", {"torch": ">=2.1"}),
        ("1.13.1", None, [H100, V100], None, "", {}),
        ("2.0.1", None, [H100], None, "the package index serves", {"torch": ">=2.1"}),
        ("2.1.0", None, [H100], None, "", {}),
        ("2.5.1", None, [RTX_5090], True, "has no build for this GPU", {"torch": ">=2.8"}),
        ("1.13.0a0+08820cb.nv22.07", None, [H100], None, "", {}),
        (None, None, [H100], None, "", {}),
        (None, "12.1", [RTX_5090], True, "no GPU architecture newer than 9.0", {}),
        ("2.7.0+cu126", "12.6", [RTX_5090], True, "no GPU architecture newer than 9.0", {"torch": ">=2.8"}),
        ("2.6.0a0+ecf3bae40a.nv25.01", "12.8", [RTX_5090], None, "", {}),
        ("2.9.0+cu130", "13.0", [V100], True, "compiled for 7.5", {"torch": "~=2.8.0"}),
        ("2.8.0+cu128", "12.8", [V100], False, "", {}),
    ],
)
def test_a_build_is_asked_for_the_code_of_every_gpu(
    known: matrix.Matrix,
    torch: str | None,
    runtime: str | None,
    gpus: list[dict[str, str]],
    holds: bool | None,
    told: str,
    pins: dict[str, str],
) -> None:
    facts: dict[str, Any] = {"gpus": gpus, "platform": {"machine": "x86_64"}}
    if torch:
        facts["distributions"] = {"torch": torch}
    if runtime:
        facts["cuda"] = {"runtime": runtime}
    verdict = torch_lacks_gpu_architecture.find(Environment(facts), known.table)
    assert verdict.holds is holds
    assert [occurrence.pins for occurrence in verdict.occurrences] == ([pins] if told else [])
    assert all(told in occurrence.summary for occurrence in verdict.occurrences)


def test_a_machine_that_nobody_named_is_taken_for_an_x86_64_and_never_sure(known: matrix.Matrix) -> None:
    facts = {"gpus": [V100], "distributions": {"torch": "2.11.0+cu128"}, "cuda": {"runtime": "12.8"}}
    verdict = torch_lacks_gpu_architecture.find(Environment(facts), known.table)
    assert (verdict.holds, verdict.missing) == (None, ("platform.machine",))
    assert [occurrence.pins for occurrence in verdict.occurrences] == [{"torch": "~=2.10.0"}]


def test_a_machine_that_nobody_named_is_not_suspected_where_its_gpu_is_served(known: matrix.Matrix) -> None:
    facts = {"gpus": [H100], "distributions": {"torch": "2.11.0+cu128"}, "cuda": {"runtime": "12.8"}}
    verdict = torch_lacks_gpu_architecture.find(Environment(facts), known.table)
    assert (verdict.holds, verdict.occurrences) == (None, ())


@pytest.mark.parametrize(("gpu", "told"), [("Tesla P100-PCIE-16GB", True), ("Tesla V100-SXM2-32GB", False)])
def test_of_a_runtime_without_a_release_all_builds_are_asked(known: matrix.Matrix, gpu: str, told: bool) -> None:
    """The builds of torch 2.8 for CUDA 12.8 run on Volta, those of other releases do not; on Pascal none does."""
    stated = matrix.infer(known, Environment({"gpus": [{"name": gpu}], "cuda": {"runtime": "12.8"}})).view
    verdict = torch_lacks_gpu_architecture.find(stated, known.table)
    assert verdict.holds is None
    assert ("distributions.torch" in verdict.missing) is told and bool(verdict.occurrences) is told
