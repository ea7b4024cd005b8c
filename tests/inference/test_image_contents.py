"""What an image of NVIDIA's holds, by the table, and what follows for its driver and for wheels beside its torch."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment, Location, Unknown
from compatcheck.matrix.traits import (
    built_for_another_torch,
    driver_below_cuda_floor,
    driver_older_than_cuda_build,
    flash_attn_of_another_torch,
    torchvision_of_another_torch,
    wheel_of_another_cxx_interface,
)
from compatcheck.packages.versions import is_vendor_build

CELLS = {"ubuntu", "python", "cuda", "cudnn", "nccl", "torch", "transformer-engine", "flash-attn", "forward"}
HERE = Location("Dockerfile", 1)


def completed(known: matrix.Matrix, release: str, reasons: dict[str, str] | None = None, **facts: Any) -> Environment:
    image = {"name": "nvcr.io/nvidia/pytorch", "release": release}
    return matrix.infer(known, Environment({"image": image, **facts}, reasons or {}, {"image": HERE})).view


def told(environment: Environment, *paths: str) -> list[Any]:
    return [environment.get(path) for path in paths]


def test_each_row_states_versions_of_what_is_known_to_follow_from_them(known: matrix.Matrix) -> None:
    table = known.table("ngc-pytorch")
    releases = list(table["releases"])
    assert releases == sorted(releases)
    assert (releases[0], releases[-1]) == ("22.01", "26.09")
    for release, row in table["releases"].items():
        assert row.keys() <= CELLS, release
        assert row.get("ubuntu") in {None, *table["libc"]}
        assert is_vendor_build(row.get("torch", "0+nv1"))
        stated = [value for name, value in row.items() if name != "forward"] + row.get("forward", [])
        assert all(Version(each) for each in stated)


def test_an_image_tells_what_nobody_states(known: matrix.Matrix) -> None:
    found = completed(known, "23.08")
    assert told(found, "python", "platform.system", "platform.libc") == ["3.10", "Linux", "glibc 2.35"]
    assert told(found, "cuda.runtime", "cuda.toolkit", "cuda.cudnn", "cuda.nccl") == ["12.2", "12.2", "8.9.4", "2.18.3"]
    assert told(found, "distributions.torch", "distributions.transformer-engine") == [
        "2.1.0a0+29c30b1",
        "0.11.0+3f01b4f",
    ]
    assert told(found, "distributions.flash-attn", "cuda.driver") == [Unknown(), Unknown()]
    assert found.locations["distributions.torch"] == HERE
    assert found.locations["cuda.nccl"] == HERE


@pytest.mark.parametrize("torch", ["2.5.1+cu124", "2.1.0", "2.1.0a0+32f93b1"])
def test_of_an_image_with_another_torch_only_the_system_is_left(known: matrix.Matrix, torch: str) -> None:
    found = completed(known, "23.08", distributions={"torch": torch})
    assert found.get("distributions.torch") == torch
    assert told(found, "python", "cuda.toolkit") == ["3.10", "12.2"]
    assert found.get("cuda.runtime") != "12.2"
    assert told(found, "cuda.nccl", "distributions.transformer-engine") == [Unknown(), Unknown()]


@pytest.mark.parametrize("torch", ["2.1.0a0", "2.1.0a0+29c30b1", "2.1.0a0+29c30b1.nv23.08"])
def test_the_image_s_own_torch_may_be_stated_too(known: matrix.Matrix, torch: str) -> None:
    found = completed(known, "23.08", distributions={"torch": torch})
    assert told(found, "distributions.torch", "cuda.runtime") == [max(torch, "2.1.0a0+29c30b1"), "12.2"]


def test_what_is_stated_counts_more_than_the_image(known: matrix.Matrix) -> None:
    stated = {"python": "3.9", "cuda": {"nccl": "2.20.5", "toolkit": None}, "platform": {"machine": "x86_64"}}
    found = completed(known, "23.08", **stated)
    assert told(found, "python", "cuda.nccl", "cuda.toolkit") == ["3.9", "2.20.5", None]
    assert told(found, "platform.machine", "platform.libc") == ["x86_64", "glibc 2.35"]


@pytest.mark.parametrize("open_still", ["distributions", "distributions.torch"])
def test_a_torch_that_something_may_have_replaced_stays_unknown(known: matrix.Matrix, open_still: str) -> None:
    found = completed(known, "23.08", {open_still: "requirements.txt is not there"})
    assert found.get("distributions.torch") == Unknown("requirements.txt is not there")
    assert told(found, "python", "cuda.runtime") == ["3.10", Unknown()]


@pytest.mark.parametrize("release", ["23.06", "31.01"])
def test_of_a_release_that_nobody_looked_up_the_reason_is_told(known: matrix.Matrix, release: str) -> None:
    found = completed(known, release)
    assert found.get("distributions.torch") == Unknown(
        f"the torch in release {release} of NVIDIA's container was not looked up"
    )
    assert told(found, "platform.system", "python") == ["Linux", Unknown()]


def test_an_image_whose_release_is_disputed_tells_nothing(known: matrix.Matrix) -> None:
    image = {"image": {"name": "nvcr.io/nvidia/pytorch"}}
    assert matrix.infer(known, Environment(image)).view.facts == image


@pytest.mark.parametrize(
    ("trait", "beside", "holds"),
    [
        (wheel_of_another_cxx_interface, {"flash-attn": "2.5.3+cu122torch2.1cxx11abiFALSE"}, True),
        (wheel_of_another_cxx_interface, {"flash-attn": "2.5.3+cu122torch2.1cxx11abiTRUE"}, None),
        (flash_attn_of_another_torch, {"flash-attn": "2.5.3+cu122torch2.1cxx11abiTRUE"}, None),
        (flash_attn_of_another_torch, {"flash-attn": "2.5.3+cu122torch2.2cxx11abiTRUE"}, None),
        (flash_attn_of_another_torch, {"flash-attn": "2.5.3"}, False),
        (torchvision_of_another_torch, {"torchvision": "0.17.2"}, None),
        (built_for_another_torch, {"xformers": "0.0.28.post3"}, None),
    ],
)
def test_the_image_s_torch_is_no_release_and_has_the_new_interface(
    known: matrix.Matrix, trait: Any, beside: dict[str, str], holds: bool | None
) -> None:
    assert trait.find(completed(known, "23.10", distributions=beside), known.table).holds is holds


def test_a_release_with_a_change_of_nvidia_s_is_not_the_project_s_own(known: matrix.Matrix) -> None:
    found = completed(known, "23.05", distributions={"torch": "2.0.0", "torchvision": "0.17.0"})
    assert found.get("cuda.runtime") == "12.1"
    assert torchvision_of_another_torch.find(found, known.table).holds is None


@pytest.mark.parametrize(
    ("release", "driver", "gpu", "holds"),
    [
        ("24.06", "470.129.06", "NVIDIA A100-SXM4-80GB", False),
        ("24.06", "470.42.01", "NVIDIA A100-SXM4-80GB", True),
        ("24.06", "460.32.03", "NVIDIA A100-SXM4-80GB", True),
        ("24.06", "510.108.03", "NVIDIA A100-SXM4-80GB", True),
        ("24.06", "470.129.06", "NVIDIA GeForce RTX 3090", True),
        ("24.06", "470.129.06", "RTX 3090", True),
        ("24.06", "470.129.06", "NVIDIA RTX A6000", None),
        ("24.06", "470.129.06", None, None),
        ("24.06", "535.104.05", "NVIDIA GeForce RTX 3090", False),
        ("24.07", "470.129.06", "NVIDIA A100-SXM4-80GB", None),
        ("24.07", "470.129.06", "NVIDIA GeForce RTX 3090", True),
        ("23.06", "470.129.06", "NVIDIA GeForce RTX 3090", None),
    ],
)
def test_an_image_runs_on_older_drivers_of_the_branches_that_its_notes_list(
    known: matrix.Matrix, release: str, driver: str, gpu: str | None, holds: bool | None
) -> None:
    gpus = {"gpus": [{"name": gpu}]} if gpu else {}
    found = completed(known, release, cuda={"driver": driver}, **gpus)
    verdict = driver_below_cuda_floor.find(found, known.table)
    assert verdict.holds is holds
    if holds is None and release != "23.06":
        assert verdict.missing == ("cuda.driver_api",)


@pytest.mark.parametrize(
    ("release", "gpu", "told", "holds"),
    [
        ("24.06", "Tesla V100-SXM2-32GB", False, False),
        ("24.06", "NVIDIA RTX A6000", False, None),
        ("24.07", "Tesla V100-SXM2-32GB", False, None),
        ("24.06", "NVIDIA GeForce RTX 3090", True, None),
    ],
)
def test_code_to_compile_may_run_by_the_library_that_an_image_carries(
    known: matrix.Matrix, release: str, gpu: str, told: bool, holds: bool | None
) -> None:
    found = completed(known, release, cuda={"driver": "535.104.05"}, gpus=[{"name": gpu}])
    verdict = driver_older_than_cuda_build.find(found, known.table)
    assert (bool(verdict.occurrences), verdict.holds) == (told, holds)


def test_an_image_with_its_own_torch_has_no_package_with_nccl(known: matrix.Matrix) -> None:
    own, other = completed(known, "23.11"), completed(known, "23.11", distributions={"torch": "2.2.0+cu121"})
    assert own.get("cuda.nccl") == "2.19.3"
    assert own.get("distributions.nvidia-nccl-cu12") is None
    assert other.get("distributions.nvidia-nccl-cu12") == Unknown()
