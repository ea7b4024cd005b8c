"""Machines of AMD and Ascend: what belongs together there, and silence of what rests on CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.compile import read_entries
from compatcheck.matrix.traits import bitsandbytes_lacks_rocm_library, torch_lacks_gfx, vllm_ascend_of_another_release
from tests.conftest import SOURCES

_OF_CUDA = re.compile(
    r"\bCUDA\b|\bnvcc\b|cuDNN|cuBLAS|\bNCCL\b|NVLink|\bsm_?\d|Ampere|Hopper|Blackwell|RTX|[AHB]\d00\b"
)
_AMD = {"name": "AMD Instinct MI300X", "compute_capability": None, "gfx": "gfx942"}
_TRUE_ANYWHERE = {"CC-2021-3622", "CC-2023-0601", "CC-2026-0003"}
"""Windows has no NCCL, older GPUs and NPUs no TF32, and a torchvision for CUDA loads beside no other torch."""
_NPU = {"name": "Ascend 910B3", "compute_capability": None, "gfx": None}


def on_other_machine(facts: Mapping[str, Any], gpu: dict[str, Any]) -> Environment:
    """The environment as it is with accelerators of another maker, and the torch that belongs to them."""
    installed = facts.get("distributions") or {}
    moved = {name: version for name, version in installed.items() if not name.startswith("nvidia-")}
    torch = (moved.get("torch") or "2.5.1").partition("+")[0]
    of_amd = gpu is _AMD
    moved |= {"torch": f"{torch}+rocm6.2"} if of_amd else {"torch": torch, "torch-npu": torch}
    absent = dict.fromkeys(("runtime", "driver", "driver_api", "toolkit", "cudnn", "nccl"))
    build = {"torch_build": {"cuda": None, "hip": "6.2.41133" if of_amd else None}}
    count = max(1, len(facts.get("gpus") or ()))
    return Environment({**facts, **build, "distributions": moved, "cuda": absent, "gpus": [gpu] * count})


def examples_on_cuda() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Affected examples of the entries whose title speaks of CUDA or of NVIDIA's GPUs."""
    for entry in read_entries(SOURCES).values():
        if _OF_CUDA.search(entry.title) and not re.search(r"AMD|ROCm|NPU", entry.title):
            yield from ((entry.id, case.environment) for case in entry.cases if case.expect == "affected")


@pytest.mark.parametrize("gpu", [_AMD, _NPU])
def test_entries_on_cuda_are_silent_elsewhere(known: matrix.Matrix, gpu: dict[str, Any]) -> None:
    examples = list(examples_on_cuda())
    claimed = {
        entry
        for entry, facts in examples
        if any(
            finding.id == entry and finding.status == "affected"
            for finding in matrix.judge(known, on_other_machine(facts, gpu)).findings
        )
    }
    assert len(examples) > 100
    assert claimed <= _TRUE_ANYWHERE


@pytest.mark.parametrize(
    ("plugin", "others", "at_fault"),
    [
        ("0.11.0", {"vllm": "0.13.0", "torch-npu": "2.7.1.post1"}, ["vllm"]),
        ("0.11.0", {"vllm": "0.11.0+empty", "torch-npu": "2.7.1"}, []),
        ("0.13.0", {"vllm": "0.13.0", "torch-npu": "2.7.1"}, ["torch-npu"]),
        ("0.10.1rc1", {"vllm": "0.10.1.1", "torch-npu": "2.7.1"}, []),
        ("0.6.0", {"vllm": "0.13.0"}, []),
    ],
)
def test_vllm_ascend_and_its_companions(
    known: matrix.Matrix, plugin: str, others: dict[str, str], at_fault: list[str]
) -> None:
    environment = Environment({"distributions": {"vllm-ascend": plugin, **others}})
    verdict = vllm_ascend_of_another_release.find(environment, known.table)
    assert [occurrence.packages[1] for occurrence in verdict.occurrences] == at_fault


@pytest.mark.parametrize(
    ("torch", "gfx", "environ", "holds"),
    [
        ("2.5.1+rocm6.2", "gfx1031", {}, True),
        ("2.5.1+rocm6.2", "gfx1100", {}, False),
        ("2.5.1+rocm6.2", "gfx1101", {}, True),
        ("2.7.1+rocm6.3", "gfx1101", {}, False),
        ("2.5.1+rocm6.2", "gfx1031", {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}, False),
        ("2.9.1+rocm7.2.0.lw.git7e1940d4", "gfx1031", {}, None),
        ("2.5.1", "gfx1031", {}, None),
    ],
)
def test_a_wheel_for_rocm_holds_code_for_its_targets(
    known: matrix.Matrix, torch: str, gfx: str, environ: dict[str, str], holds: bool | None
) -> None:
    facts = {"distributions": {"torch": torch}, "gpus": [{"gfx": gfx}], "environ": environ}
    verdict = torch_lacks_gfx.find(Environment(facts), known.table)
    assert verdict.holds is holds


def test_kin_of_a_target_get_the_override(known: matrix.Matrix) -> None:
    facts = {"distributions": {"torch": "2.7.1+rocm6.3"}, "gpus": [{"gfx": "gfx1151"}]}
    (occurrence,) = torch_lacks_gfx.find(Environment(facts), known.table).occurrences
    assert occurrence.remedies[0]["environ"] == {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}


@pytest.mark.parametrize(
    ("release", "hip", "gfx", "holds"),
    [
        ("0.49.2", "6.3.42131", "gfx942", False),
        ("0.49.2", "6.3.42131", "gfx1030", True),
        ("0.49.0", "7.2.1", "gfx942", True),
        ("0.50.0", "7.3", "gfx942", False),
        ("0.48.2", "6.3", "gfx942", None),
        ("0.45.3.dev271", "6.3", "gfx942", None),
    ],
)
def test_a_wheel_of_bitsandbytes_has_a_library_for_rocm(
    known: matrix.Matrix, release: str, hip: str, gfx: str, holds: bool | None
) -> None:
    facts = {"distributions": {"bitsandbytes": release}, "torch_build": {"hip": hip}, "gpus": [{"gfx": gfx}]}
    assert bitsandbytes_lacks_rocm_library.find(Environment(facts), known.table).holds is holds
