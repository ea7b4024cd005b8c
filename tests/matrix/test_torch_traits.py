"""What is compiled for one torch or one CUDA runtime, beside another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment, Unknown
from compatcheck.matrix.traits import (
    awq_kernels_of_another_torch,
    bitsandbytes_lacks_cuda_library,
    flash_attn_of_another_torch,
    nccl_built_with_cuda_11_0,
    torchvision_lacks_operators,
    torchvision_of_another_torch,
)
from compatcheck.packages.versions import parse_version

SOLUTIONS = Path(__file__).parent / "default_torch.txt"


def environment(runtime: str | None, **distributions: str) -> Environment:
    named = {name.replace("_", "-"): version for name, version in distributions.items()}
    return Environment({"distributions": named, **({"cuda": {"runtime": runtime}} if runtime else {})})


@pytest.mark.parametrize(
    ("installed", "runtime", "pins"),
    [
        ("0.42.0", "12.4", {"bitsandbytes": ">=0.43.1"}),
        ("0.43.0", "12.4", {"bitsandbytes": ">=0.43.1"}),
        ("0.44.1", "12.6", {"bitsandbytes": ">=0.45.0"}),
        ("0.45.2", "12.8", {"bitsandbytes": ">=0.45.3"}),
        ("0.45.5", "12.9", {"bitsandbytes": ">=0.46.1"}),
        ("0.47.0", "13.0", {"bitsandbytes": ">=0.48.0"}),
        ("0.49.2", "13.2", {"bitsandbytes": ">=0.50.0"}),
        ("0.46.0", "11.7", {"bitsandbytes": ">=0.50.0"}),
        ("0.45.0", "10.2", {}),
        ("0.50.2", "14.0", {}),
    ],
)
def test_the_first_release_with_a_library_is_asked_for(
    known: matrix.Matrix, installed: str, runtime: str, pins: dict[str, str]
) -> None:
    verdict = bitsandbytes_lacks_cuda_library.find(environment(runtime, bitsandbytes=installed), known.table)
    (occurrence,) = verdict.occurrences
    assert (verdict.holds, occurrence.pins) == (True, pins)
    if pins:
        mended = environment(runtime, bitsandbytes=pins["bitsandbytes"].removeprefix(">="))
        assert bitsandbytes_lacks_cuda_library.find(mended, known.table).holds is False


@pytest.mark.parametrize(
    ("installed", "runtime", "more", "holds"),
    [
        ("0.45.2", "12.6", {}, False),
        ("0.50.0", "11.6", {}, False),
        ("0.50.0", "13.1", {}, False),
        ("0.40.1", "12.8", {}, None),
        ("0.42.0", "12.1", {}, False),
        ("0.45.2", None, {}, None),
        ("0.45.2", "12.8", {"gpus": []}, False),
        ("0.45.2", "12.8", {"platform": {"machine": "aarch64"}}, None),
        ("0.45.2", "12.8", {"platform": {"system": "Windows", "machine": "AMD64"}}, True),
        ("0.42.0", "12.4", {"platform": {"system": "Windows", "machine": "AMD64"}}, None),
        ("0.45.3.dev0", "12.8", {}, None),
        ("0.45.2+cu128", "12.8", {}, None),
    ],
)
def test_a_library_that_is_there_or_not_looked_up_is_no_fault(
    known: matrix.Matrix, installed: str, runtime: str | None, more: dict[str, Any], holds: bool | None
) -> None:
    facts = environment(runtime, bitsandbytes=installed).facts
    assert bitsandbytes_lacks_cuda_library.find(Environment({**facts, **more}), known.table).holds is holds


def test_each_row_of_libraries_begins_at_a_later_release(known: matrix.Matrix) -> None:
    begins = [parse_version(row["from"]) for row in known.table("bitsandbytes-libraries")["releases"]]
    assert None not in begins
    assert begins == sorted(begins)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("wheel", "torch", "holds"),
    [
        ("2.7.4.post1+cu12torch2.4cxx11abiFALSE", "2.5.1+cu124", True),
        ("2.7.4.post1+cu12torch2.4cxx11abifalse", "2.5.1", True),
        ("2.7.4+cu126torch2.6", "2.7.0", True),
        ("2.7.4.post1+cu12torch2.5cxx11abiTRUE", "2.5.0", False),
        ("2.7.4.post1", "2.5.0", False),
        ("2.7.4.post1+cu12torch2.6cxx11abiTRUE", "2.7.1", None),
        ("2.7.4.post1+cu12torch2.6cxx11abiFALSE", "2.7.1", True),
        ("2.5.3+cu122torch2.1cxx11abiFALSE", "2.2.0a0+6a974bec", None),
        ("2.5.3+cu122torch2.1cxx11abiFALSE", "2.2.0.dev20231106+cu121", None),
    ],
)
def test_the_label_of_a_wheel_names_its_torch(known: matrix.Matrix, wheel: str, torch: str, holds: bool | None) -> None:
    assert (
        flash_attn_of_another_torch.find(environment(None, flash_attn=wheel, torch=torch), known.table).holds is holds
    )


@pytest.mark.parametrize("line", SOLUTIONS.read_text(encoding="utf-8").splitlines())
def test_what_the_package_index_serves_tells_its_cuda_runtime(known: matrix.Matrix, line: str) -> None:
    """Solutions for each minor release as the resolver gave them, cut to torch and what names a CUDA version."""
    versions = dict(pin.split("==") for pin in line.split())
    runtime = matrix.infer(known, Environment({"distributions": versions})).view.get("cuda.runtime")
    release = ".".join(versions["torch"].split(".")[:2])
    assert runtime == known.table("torch-cuda-builds")["default"].get(release, Unknown())


@pytest.mark.parametrize(
    ("installed", "holds"),
    [
        ({"autoawq_kernels": "0.0.6", "torch": "2.2.2"}, False),
        ({"autoawq_kernels": "0.0.6", "torch": "2.3.0"}, True),
        ({"autoawq_kernels": "0.0.9", "torch": "2.4.1+cu121"}, True),
        ({"autoawq_kernels": "0.0.6+cu121", "torch": "2.3.0"}, False),
        ({"autoawq_kernels": "0.0.6", "torch": "2.3.0a0+40ec155e58.nv24.3"}, None),
        ({"autoawq_kernels": "0.0.6"}, None),
        ({"autoawq": "0.2.4", "torch": "2.3.0"}, None),
        ({"autoawq": "0.1.8", "torch": "2.2.1"}, True),
        ({"autoawq": "0.1.8+cu121", "torch": "2.2.1"}, False),
        ({"autoawq": "0.1.5", "torch": "2.2.1"}, False),
    ],
)
def test_kernels_of_awq_compiled_on_the_spot_fit_their_torch(
    known: matrix.Matrix, installed: dict[str, str], holds: bool | None
) -> None:
    assert awq_kernels_of_another_torch.find(environment(None, **installed), known.table).holds is holds


@pytest.mark.parametrize(
    ("torchvision", "torch", "unimportable", "without_operators"),
    [
        ("0.13.1", "2.0.0", False, True),
        ("0.16.2", "2.0.1", False, True),
        ("0.16.2", "2.1.2", False, False),
        ("0.17.2", "2.5.1", True, False),
        ("0.19.1", "2.5.1", False, True),
        ("0.19.1", "2.6.0", True, False),
        ("0.19.1", None, None, None),
        ("0.21.0", None, None, False),
        ("0.16.2", None, False, None),
        (None, "2.6.0", None, None),
        ("0.16.2", "2.2.0a0+6a974bec", False, None),
    ],
)
def test_an_old_torchvision_beside_another_torch_lacks_no_more_than_its_operators(
    known: matrix.Matrix,
    torchvision: str | None,
    torch: str | None,
    unimportable: bool | None,
    without_operators: bool | None,
) -> None:
    named = {name: version for name, version in (("torch", torch), ("torchvision", torchvision)) if version}
    judged = environment(None, **named)
    assert torchvision_of_another_torch.find(judged, known.table).holds is unimportable
    assert torchvision_lacks_operators.find(judged, known.table).holds is without_operators


def test_nccl_for_cuda_12_takes_the_place_of_the_other(known: matrix.Matrix) -> None:
    there = environment(None, torch="2.3.0+cu118", vllm="0.4.3+cu118", nvidia_nccl_cu11="2.20.5")
    assert nccl_built_with_cuda_11_0.find(there, known.table).holds is True
    for further in (
        {"distribution_ranges": {"nvidia-nccl-cu12": ""}},
        {"distributions": {"nvidia-nccl-cu12": "2.21.5"}},
    ):
        held = {**there.facts["distributions"], **further.get("distributions", {})}
        mended = Environment({**there.facts, **further, "distributions": held})
        assert nccl_built_with_cuda_11_0.find(mended, known.table).holds is False
