"""Traits of nvcc and of a driver beside torch, and CUDA numbers in reports that are not torch's."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.bug_report._platform import platform_claims
from compatcheck.environment import Environment, Unknown
from compatcheck.matrix.traits import (
    deepspeed_refuses_cuda_toolkit,
    driver_below_cuda_floor,
    flash_attn_cannot_be_compiled,
)

FLASH = {"attention": "flash_attention_2"}


@pytest.mark.parametrize(
    ("cuda", "holds"),
    [
        ({"runtime": "11.7", "toolkit": "12.2"}, True),
        ({"runtime": "12.1", "toolkit": "12.8"}, False),
        ({"runtime": "13.0", "toolkit": "13.2"}, True),
        ({"runtime": "13.0", "toolkit": "13.0.48"}, False),
        ({"runtime": "13.0", "toolkit": None}, False),
        ({"runtime": "13.0"}, None),
    ],
)
def test_deepspeed_takes_another_minor_version_up_to_cuda_12(
    known: matrix.Matrix, cuda: dict[str, str | None], holds: bool | None
) -> None:
    assert deepspeed_refuses_cuda_toolkit.find(Environment({"cuda": cuda}), known.table).holds is holds


@pytest.mark.parametrize(
    ("installed", "toolkit", "training", "told", "holds"),
    [
        ({}, "12.1", FLASH, True, None),
        ({"flash-attn": None}, "12.1", FLASH, True, True),
        ({"flash-attn": "2.3.6"}, "12.1", FLASH, False, False),
        ({"flash-attn": None}, "11.8", FLASH, False, False),
        ({"flash-attn": None}, "12.1", {"attention": "sdpa"}, False, False),
        ({"flash-attn": None}, "12.1", {}, False, None),
    ],
)
def test_flash_attn_that_is_missing_is_not_compiled_by_another_major_version(
    known: matrix.Matrix,
    installed: dict[str, str | None],
    toolkit: str,
    training: dict[str, str],
    told: bool,
    holds: bool | None,
) -> None:
    facts = {"distributions": installed, "cuda": {"runtime": "11.7", "toolkit": toolkit}, "training": training}
    verdict = flash_attn_cannot_be_compiled.find(Environment(facts), known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (told, holds)


@pytest.mark.parametrize(("torch", "holds"), [("2.3.1", True), ("2.4.0", None), ("2.8.0+cu128", None), ("2.9.0", True)])
def test_flash_attn_with_a_wheel_for_torch_may_need_no_compiler(
    known: matrix.Matrix, torch: str, holds: bool | None
) -> None:
    facts = {"distributions": {"flash-attn": None, "torch": torch}, "cuda": {"runtime": "12.1", "toolkit": "11.8"}}
    verdict = flash_attn_cannot_be_compiled.find(Environment({**facts, "training": FLASH}), known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (True, holds)


@pytest.mark.parametrize(
    ("torch", "cuda", "holds", "pins"),
    [
        ("2.1.0", {"driver": "470.182.03"}, None, {"torch": "<=2.0.1"}),
        ("2.1.0", {"driver": "470.182.03", "runtime": "12.1"}, True, {"torch": "<=2.0.1"}),
        ("2.1.0", {"driver": "470.182.03", "runtime": "11.8"}, False, None),
        ("2.0.1", {"driver": "470.182.03"}, None, None),
        ("2.1.0a0+32f93b1", {"driver": "470.182.03"}, None, None),
    ],
)
def test_a_driver_is_held_against_the_package_index_where_the_build_is_not_known(
    known: matrix.Matrix, torch: str, cuda: dict[str, str], holds: bool | None, pins: dict[str, str] | None
) -> None:
    facts = {"distributions": {"torch": torch}, "cuda": cuda}
    verdict = driver_below_cuda_floor.find(Environment(facts), known.table)
    assert verdict.holds is holds
    assert [dict(each.pins) for each in verdict.occurrences] == ([] if pins is None else [pins])


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        ({"distributions": {"torch": "2.7.0"}, "cuda": {"runtime": "12.2"}}, False),
        ({"distributions": {"torch": "2.7.0"}, "cuda": {"runtime": "12.6"}}, True),
        ({"distributions": {"torch": "2.7.0a0+7c8ec84dab.nv25.3"}, "cuda": {"runtime": "12.2"}}, True),
        ({"distributions": {"torch": "2.7.0"}, "cuda": {"runtime": "12.2"}, "torch_build": {"cuda": "12.2"}}, True),
    ],
)
def test_a_runtime_that_no_build_of_torch_has_is_not_its_own(
    known: matrix.Matrix, facts: dict[str, Any], kept: bool
) -> None:
    completed = matrix.infer(known, Environment(facts)).view
    assert isinstance(completed.get("cuda.runtime"), Unknown) is not kept


@pytest.mark.parametrize(
    ("text", "libc"),
    [
        ("Ubuntu 20.04", "glibc 2.31"),
        ("Ubuntu 20.04.6 LTS (x86_64)", "glibc 2.31"),
        ("Linux-4.18.0 RHEL 8", "glibc 2.28"),
        ("Ubuntu 20.04 with glibc 2.35", "glibc 2.35"),
        ("Ubuntu", None),
        ("Windows 10", None),
    ],
)
def test_the_release_of_a_distribution_tells_its_c_library(text: str, libc: str | None) -> None:
    told = {claim.path: claim.value for claim in platform_claims(text, 1)}
    assert told.get("platform.libc") == libc
