"""The CUDA of torch and of its libraries, where neither a label nor an installed file tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.bug_report import read_report
from compatcheck.environment import Environment, Location, Unknown
from compatcheck.matrix.matching.match import TraitVerdict, match_table
from compatcheck.project.overlay import over
from compatcheck.project.reading import read_paths

LINUX = {"system": "Linux", "machine": "x86_64"}
A100 = [{"compute_capability": "8.0"}]


def inferred(known: matrix.Matrix, file: str = "requirements.txt", **facts: Any) -> Environment:
    at = {"distributions.torch": Location(file, 1)}
    return matrix.infer(known, Environment({"platform": LINUX, **facts}, {}, at)).view


@pytest.mark.parametrize(
    ("torch", "runtime"),
    [("2.5.0", "12.4"), ("2.4.1", "12.1"), ("2.8.0", "12.8"), ("2.5.0+cu118", "11.8"), ("2.5.0+cpu", None)],
)
def test_a_plain_release_is_the_build_of_the_index(known: matrix.Matrix, torch: str, runtime: str | None) -> None:
    assert inferred(known, distributions={"torch": torch}, gpus=A100).get("cuda.runtime") == runtime


@pytest.mark.parametrize(
    "facts",
    [
        {"gpus": []},
        {"gpus": A100, "platform": {"system": "Linux", "machine": "aarch64"}},
        {"gpus": A100, "platform": {"system": "Windows", "machine": "AMD64"}},
        {"gpus": A100, "platform": {}},
        {"environ": {"CUDA_VISIBLE_DEVICES": ""}},
        {"environ": {"CUDA_VISIBLE_DEVICES": "-1"}},
        {"gpus": A100, "file": "environment.yml"},
        {"gpus": A100, "distributions": {"torch": "2.5.0", "torch-npu": "2.5.1"}},
        {"gpus": A100, "distributions": {"torch": "2.5.0a0+872d972e41.nv24.08"}},
    ],
)
def test_another_platform_or_no_gpu_leaves_the_build_open(known: matrix.Matrix, facts: dict[str, Any]) -> None:
    found = inferred(known, **{"distributions": {"torch": "2.5.0"}, **facts})
    assert isinstance(found.get("cuda.runtime"), Unknown)


def test_on_amd_gpus_there_is_no_cuda(known: matrix.Matrix) -> None:
    gpus = [{"name": "AMD Instinct MI250X", "compute_capability": None}]
    assert inferred(known, distributions={"torch": "2.5.0"}, gpus=gpus).get("cuda.runtime") is None


def test_a_variable_that_lists_gpus_shows_a_run_on_them(known: matrix.Matrix) -> None:
    found = inferred(known, distributions={"torch": "2.6.0"}, environ={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert found.get("cuda.runtime") == "12.4"


def test_libraries_come_from_the_packages_of_the_same_cuda(known: matrix.Matrix) -> None:
    packages = {"nvidia-cuda-runtime-cu12": "12.4.127", "nvidia-cudnn-cu12": "9.1.0.70", "nvidia-nccl-cu11": "2.20.5"}
    found = inferred(known, distributions={"torch": "2.5.0", **packages})
    cuda = [found.get(f"cuda.{name}") for name in ("runtime", "cudnn", "nccl")]
    assert cuda == ["12.4", "9.1.0.70", Unknown()]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("torch 2.5.0, CUDA 11.8, loss goes to nan", True),
        ("pip list\ntorch==2.5.0+cpu\nCUDA 11.8", False),
        ("torch 2.5.0, loss goes to nan", None),
    ],
)
def test_a_cuda_version_in_prose_is_enough_for_present(known: matrix.Matrix, text: str, holds: bool | None) -> None:
    judged = matrix.infer(known, read_report(text, "report.md"))
    present = {"cuda.runtime": "present"}
    assert match_table(present, judged.view, lambda *_: TraitVerdict(False), None, judged.inferred).holds is holds


def test_another_index_than_the_package_index_leaves_the_build_open(tmp_path: Path, known: matrix.Matrix) -> None:
    for line, runtime in (
        ("--extra-index-url https://mirror.example/pytorch-wheels/\n", Unknown),
        ("-f ./wheels\n", Unknown),
        ("--index-url https://mirror.example/pypi/simple/\n", str),
        ("", str),
    ):
        path = tmp_path / "requirements.txt"
        path.write_text(f"{line}torch==2.5.0\n")
        host = Environment({"platform": LINUX, "gpus": A100})
        stated = over(host, read_paths([str(path)]), "instead")
        assert isinstance(matrix.infer(known, stated).view.get("cuda.runtime"), runtime), line
