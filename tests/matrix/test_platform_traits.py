"""What a label, a driver, a second package or the cards say of what was built for another machine."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.traits import (
    conda_torch_beside_newer_mkl,
    driver_older_than_cuda_build,
    flash_attn_wheel_needs_newer_libc,
    nccl_built_with_cuda_11_0,
    older_nccl_in_same_place,
    one_gpu_visible,
    rtx_40_peers_left_on,
    several_gpus_visible,
    wheel_of_another_cxx_interface,
)

OLD, NEW = "2.6.3+cu123torch{}cxx11abiFALSE", "2.6.3+cu123torch{}cxx11abiTRUE"


@pytest.mark.parametrize(
    ("wheel", "distributions", "told", "holds"),
    [
        (NEW.format("2.2"), {"torch": "2.2.0+cu118"}, True, True),
        (NEW.format("2.2"), {"torch": "2.2.0", "nvidia-cuda-runtime-cu12": "12.1.105"}, True, True),
        (NEW.format("2.2"), {"torch": "2.2.0"}, True, None),
        (NEW.format("2.4"), {}, True, None),
        (OLD.format("2.2"), {"torch": "2.2.0+cu118"}, False, None),
        (OLD.format("2.7"), {"torch": "2.7.1+cu128"}, False, None),
        ("2.8.3+cu12torch2.6cxx11abiFALSE", {"torch": "2.6.0+cu126"}, False, None),
        (NEW.format("2.6"), {"torch": "2.6.0+cu126"}, False, None),
        (OLD.format("2.6"), {"torch": "2.6.0+cu126"}, True, True),
        (NEW.format("2.6"), {"torch": "2.6.0+cu124"}, True, True),
        (NEW.format("2.6"), {"torch": "2.6.0"}, False, None),
        (NEW.format("2.5"), {"torch": "2.5.0a0+872d972e41.nv24.08"}, False, None),
        (OLD.format("2.5"), {"torch": "2.5.0a0+872d972e41.nv24.08"}, True, True),
        (NEW.format("2.4"), {"torch": "2.5.1+cu124"}, False, None),
        (NEW.format("2.5"), {"torch": "2.5.1+rocm6.2"}, False, None),
        ("2.8.3", {"torch": "2.5.1+cu124"}, False, None),
    ],
)
def test_the_interface_of_a_wheel_and_of_torch_are_compared(
    known: matrix.Matrix, wheel: str, distributions: dict[str, str], told: bool, holds: bool | None
) -> None:
    facts = {"distributions": {"flash-attn": wheel, **distributions}}
    verdict = wheel_of_another_cxx_interface.find(Environment(facts), known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (told, holds)


def test_without_a_labelled_wheel_nothing_is_open(known: matrix.Matrix) -> None:
    complete = {"distributions": {"flash-attn": "2.8.3", "torch": "2.8.0"}, "distributions_complete": True}
    assert wheel_of_another_cxx_interface.find(Environment(complete), known.table).holds is False


@pytest.mark.parametrize(
    ("installed", "libc", "told", "holds"),
    [
        ("2.8.2+cu12torch2.7cxx11abiTRUE", "glibc 2.31", True, True),
        ("2.8.3+cu128torch2.8", "glibc 2.31", True, None),
        ("2.8.2", "glibc 2.31", True, None),
        ("2.8.2", "glibc 2.32", False, False),
        ("2.8.0", "glibc 2.31", False, False),
        ("2.8.0.post1", "glibc 2.28", True, None),
        ("2.8.2", "musl 1.2", False, False),
        ("2.8.2", None, False, None),
    ],
)
def test_a_wheel_asks_for_the_c_library_it_was_built_on(
    known: matrix.Matrix, installed: str, libc: str | None, told: bool, holds: bool | None
) -> None:
    facts: dict[str, Any] = {"distributions": {"flash-attn": installed}}
    if libc:
        facts["platform"] = {"libc": libc}
    verdict = flash_attn_wheel_needs_newer_libc.find(Environment(facts), known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (told, holds)


@pytest.mark.parametrize(
    ("facts", "holds"),
    [
        ({"gpus": [{"name": "Tesla T4"}]}, True),
        ({"gpus": [{"name": "Tesla T4"}] * 2}, False),
        ({"gpus": [{"name": "Tesla T4"}] * 2, "training": {"world_size": 1}}, None),
        ({"gpus": [{"name": "Tesla T4"}] * 2, "environ": {"CUDA_VISIBLE_DEVICES": "1"}}, True),
        ({"gpus": [{"name": "Tesla T4"}] * 2, "environ": {"CUDA_VISIBLE_DEVICES": "0,1"}}, False),
        ({"gpus": [{"name": "Tesla T4"}], "environ": {"CUDA_VISIBLE_DEVICES": "-1"}}, False),
        ({"gpus": [{"name": "Tesla T4", "uncounted": True}]}, None),
        ({"gpus": []}, False),
        ({"training": {"world_size": 1}}, None),
    ],
)
def test_one_rank_may_see_several_gpus(known: matrix.Matrix, facts: dict[str, Any], holds: bool | None) -> None:
    assert one_gpu_visible.find(Environment(facts), known.table).holds is holds


@pytest.mark.parametrize(
    ("facts", "holds", "suspected"),
    [
        ({"gpus": [{"name": "Tesla T4"}]}, False, False),
        ({"gpus": []}, False, False),
        ({"gpus": [{"name": "Tesla T4"}] * 2}, None, True),
        ({"gpus": [{"name": "Tesla T4"}] * 2, "environ": {"CUDA_VISIBLE_DEVICES": None}}, True, False),
        ({"gpus": [{"name": "Tesla T4"}] * 2, "environ": {"CUDA_VISIBLE_DEVICES": "1"}}, False, False),
        ({"environ": {"CUDA_VISIBLE_DEVICES": "0,1"}}, True, False),
        ({"gpus": [{"name": "Tesla T4", "uncounted": True}]}, None, True),
        ({}, None, False),
    ],
)
def test_several_gpus_are_suspected_where_some_are_named(
    known: matrix.Matrix, facts: dict[str, Any], holds: bool | None, suspected: bool
) -> None:
    verdict = several_gpus_visible.find(Environment(facts), known.table)
    assert (verdict.holds, verdict.suspected) == (holds, suspected)


@pytest.mark.parametrize(
    ("distributions", "told", "holds"),
    [
        ({"torch": "2.0.1", "mkl": "2024.1.0", "pytorch-cuda": "11.8"}, True, True),
        ({"torch": "2.0.1", "mkl": "2024.1.0"}, True, None),
        ({"torch": "2.0.1", "mkl": "2024.0.0"}, False, False),
        ({"torch": "2.3.0", "mkl": "2024.1.0"}, False, False),
        ({"torch": "2.0.1+cu118", "mkl": "2024.1.0"}, False, False),
        ({"torch": "2.0.1", "mkl": "2024.1.0", "nvidia-cublas-cu11": "11.10.3.66"}, False, False),
        ({"torch": "2.0.1"}, False, None),
    ],
)
def test_a_torch_of_conda_is_told_from_a_wheel(
    known: matrix.Matrix, distributions: dict[str, str], told: bool, holds: bool | None
) -> None:
    verdict = conda_torch_beside_newer_mkl.find(Environment({"distributions": distributions}), known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (told, holds)


@pytest.mark.parametrize(
    ("cuda", "told", "holds"),
    [
        ({"runtime": "12.8", "driver": "550.144.03"}, True, None),
        ({"runtime": "12.8", "driver": "550.144.03", "machine_code": False}, True, True),
        ({"runtime": "12.8", "driver": "550.144.03", "machine_code": True}, False, False),
        ({"runtime": "12.8", "driver": "550.144.03", "driver_api": "12.8"}, False, False),
        ({"runtime": "12.8", "driver": "570.133.20"}, False, False),
        ({"runtime": "12.7", "driver": "550.144.03"}, False, None),
        ({"runtime": None, "driver": "550.144.03"}, False, False),
        ({"runtime": "12.8"}, False, None),
    ],
)
def test_a_driver_compiles_what_its_own_cuda_knows(
    known: matrix.Matrix, cuda: dict[str, Any], told: bool, holds: bool | None
) -> None:
    verdict = driver_older_than_cuda_build.find(Environment({"cuda": cuda}), known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (told, holds)


@pytest.mark.parametrize(
    ("distributions", "cuda", "told", "holds"),
    [
        ({"nvidia-nccl-cu12": "2.29.3", "nvidia-nccl-cu13": "2.29.7"}, {"runtime": "13.2"}, True, None),
        ({"nvidia-nccl-cu12": "2.29.3", "nvidia-nccl-cu13": "2.29.7"}, {"runtime": "12.9"}, False, False),
        (
            {"nvidia-nccl-cu11": "2.14.3", "nvidia-nccl-cu12": "2.27.3"},
            {"runtime": "12.8", "nccl": "2.14.3"},
            True,
            True,
        ),
        (
            {"nvidia-nccl-cu11": "2.14.3", "nvidia-nccl-cu12": "2.27.3"},
            {"runtime": "12.8", "nccl": "2.27.3"},
            False,
            False,
        ),
        ({"nvidia-nccl-cu11": "2.14.3", "nvidia-nccl-cu12": "2.27.3"}, {}, False, None),
        ({"nvidia-nccl-cu12": "2.27.3"}, {"runtime": "12.8"}, False, False),
    ],
)
def test_an_older_nccl_beside_the_own_one_is_told(
    known: matrix.Matrix, distributions: dict[str, str], cuda: dict[str, str], told: bool, holds: bool | None
) -> None:
    facts = {"distributions": distributions, "cuda": cuda}
    verdict = older_nccl_in_same_place.find(Environment(facts), known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (told, holds)


@pytest.mark.parametrize(
    ("distributions", "holds"),
    [
        ({"nvidia-nccl-cu11": "2.20.5"}, True),
        ({"nvidia-nccl-cu11": "2.21.5"}, False),
        ({"torch": "2.2.0+cu118"}, True),
        ({"torch": "2.5.1+cu118"}, False),
        ({"torch": "2.2.0+cu121"}, False),
        ({"torch": "2.2.0"}, None),
    ],
)
def test_the_nccl_of_cuda_11_is_known_by_its_package_or_by_torch(
    known: matrix.Matrix, distributions: dict[str, str], holds: bool | None
) -> None:
    assert nccl_built_with_cuda_11_0.find(Environment({"distributions": distributions}), known.table).holds is holds


TWO = [{"name": "NVIDIA GeForce RTX 4090"}] * 2
UNSET = {"NCCL_P2P_DISABLE": None, "NCCL_IB_DISABLE": None}


@pytest.mark.parametrize(
    ("facts", "told", "holds"),
    [
        ({"cuda": {"driver": "535.183.01"}, "environ": UNSET, "training": {"launcher": "torchrun"}}, True, True),
        ({"cuda": {"driver": "535.183.01"}, "environ": UNSET}, True, None),
        ({"cuda": {"driver": "535.183.01"}, "environ": UNSET, "training": {"launcher": "accelerate"}}, False, False),
        ({"cuda": {"driver": "550.40.07"}, "environ": UNSET}, False, False),
        ({"cuda": {"driver": "550.90.07"}, "distributions": {"accelerate": "0.27.0"}}, True, None),
        ({"distributions": {"accelerate": "0.24.1"}}, False, False),
        ({}, True, None),
        ({"distributions": {"accelerate": "1.8.0"}}, False, False),
        ({"environ": {"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "1"}}, False, False),
        ({"environ": {"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": None}}, True, None),
        ({"gpus": TWO[:1]}, False, False),
        ({"gpus": [{"name": "NVIDIA GeForce RTX 3090"}] * 2}, False, False),
    ],
)
def test_several_cards_without_peer_access(
    known: matrix.Matrix, facts: dict[str, Any], told: bool, holds: bool | None
) -> None:
    machine = {"gpus": TWO, "distributions": {"accelerate": "0.34.2"}, **facts}
    verdict = rtx_40_peers_left_on.find(Environment(machine), known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (told, holds)
