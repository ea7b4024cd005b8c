"""The builds of torch that are proposed are those the matrix itself then calls clean, and the nearest of them first."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.advice import resolver, torch_builds
from compatcheck.advice.model import Demands, Line, Place, Unsolvable, Wanted
from compatcheck.environment import Environment
from compatcheck.inference.torch_builds import backend_of
from compatcheck.matrix.traits import driver_below_cuda_floor, torch_lacks_gpu_architecture
from tests.advice.pytorch_index import Wheel, serve

SOURCES = Path(__file__).parents[2] / "matrix"
KNOWN = matrix.load(str(SOURCES))
TABLE = functools.cache(KNOWN.table)
BUILDS = TABLE("torch-cuda-builds")
AT_FAULT = (driver_below_cuda_floor, torch_lacks_gpu_architecture)
DRIVERS = {"535.104.05": "12.2", "570.26": "12.8", "580.65.06": "13.0", "595.45.04": "13.2"}
CAPABILITIES = ["3.7", "6.1", "7.0", "7.5", "8.9", "9.0", "10.3", "12.0"]


def machine(driver: str | None = None, capability: str | None = None, **more: Any) -> Environment:
    facts: dict[str, Any] = {"platform": {"system": "Linux", "machine": "x86_64"}}
    if driver:
        facts["cuda"] = {"driver": driver, "driver_api": DRIVERS[driver]}
    if capability:
        facts["gpus"] = [{"compute_capability": capability}]
    return Environment({**facts, **more})


def default_of(release: str) -> dict[str, str]:
    """What the package index serves: no label, and the runtime in a distribution of its own."""
    return {"torch": f"{release}.0", "nvidia-cuda-runtime": f"{BUILDS['default'][release]}.0"}


def is_affected(environment: Environment, versions: Mapping[str, str]) -> bool:
    """Whether one of the two entries on torch's build holds of such a solution."""
    solution = matrix.infer(KNOWN, Environment({**environment.facts, "distributions": versions})).view
    return any(trait.find(solution, TABLE).holds for trait in AT_FAULT)


def test_a_default_build_that_the_driver_cannot_run_is_left_for_one_that_it_can() -> None:
    assert torch_builds.ways(machine("535.104.05", "8.0"), default_of("2.11"), TABLE) == (
        Demands({}, "cu126"),
        Demands({}, "cu128"),
        Demands({}, "cu129"),
        Demands({"torch": "<2.11"}, "cu126"),
        Demands({"torch": ">=2.12"}, "cu126"),
        Demands({"torch": "<2.11"}),
    )


def test_the_newest_runtime_the_driver_was_made_for_comes_first() -> None:
    found = torch_builds.ways(machine("570.26", "8.0"), default_of("2.11"), TABLE)
    assert [way.torch_backend for way in found if not way.specifiers] == ["cu128", "cu126", "cu129"]
    unstated = machine("570.26", "8.0", cuda={"driver": "570.26"})
    assert torch_builds.ways(unstated, default_of("2.11"), TABLE) == found


def test_a_gpu_newer_than_every_build_of_its_release_asks_for_a_newer_release() -> None:
    found = torch_builds.ways(machine("595.45.04", "12.0"), {"torch": "2.5.1+cu124"}, TABLE)
    assert found == (Demands({"torch": ">=2.7"}, "cu128"),)


def test_a_gpu_older_than_every_build_of_its_release_asks_for_an_older_release() -> None:
    found = torch_builds.ways(machine("595.45.04", "7.0"), default_of("2.15"), TABLE)
    assert found == (Demands({"torch": "<2.15"}, "cu126"), Demands({"torch": "<2.11"}))
    found = torch_builds.ways(machine("595.45.04", "6.1"), {"torch": "2.7.1+cu128"}, TABLE)
    assert found == (Demands({"torch": "<2.7"}, "cu126"), Demands({"torch": ">=2.8"}, "cu126"))


def test_a_build_nobody_looked_into_is_proposed_only_where_none_is_known_to_run() -> None:
    aarch64 = Environment({**machine("570.26", "8.0").facts, "platform": {"system": "Linux", "machine": "aarch64"}})
    found = torch_builds.ways(aarch64, {"torch": "2.11.0+cu130"}, TABLE)
    assert found == (Demands({"torch": ">=2.12"}, "cu126"),)
    unknown = Environment({**aarch64.facts, "platform": {"system": "Linux", "machine": "riscv64"}})
    found = torch_builds.ways(unknown, {"torch": "2.11.0+cu130"}, TABLE)
    assert found == (Demands({}, "cu128"), Demands({}, "cu126"), Demands({}, "cu129"))


@pytest.mark.parametrize(
    ("environment", "versions"),
    [
        (machine("535.104.05", "8.0"), {"torch": "2.11.0+cu126"}),
        (machine("535.104.05", "8.0"), {"torch": "2.11.0+cpu"}),
        (machine("535.104.05", "8.0"), {"torch": "2.11.0"}),
        (machine("535.104.05", "8.0"), {"numpy": "2.0.0"}),
        (machine(), default_of("2.15")),
        (machine(gpus=[]), default_of("2.15")),
    ],
)
def test_nothing_is_proposed_where_nothing_speaks_against_the_build(
    environment: Environment, versions: dict[str, str]
) -> None:
    assert torch_builds.ways(environment, versions, TABLE) == ()


def test_the_library_itself_counts_more_than_the_table() -> None:
    own_build = machine(
        "535.104.05",
        "9.0",
        cuda={"runtime": "12.4", "driver": "535.104.05"},
        torch_build={"architectures": ["sm_80", "sm_86"]},
    )
    found = torch_builds.ways(own_build, {"torch": "2.5.1"}, TABLE)
    assert Demands({}, "cu121") in found
    compiled_here = own_build._replace(facts={**own_build.facts, "torch_build": {"architectures": ["sm_90"]}})
    assert torch_builds.ways(compiled_here, {"torch": "2.5.1"}, TABLE) == ()


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_what_is_proposed_the_matrix_calls_clean(driver: str, capability: str) -> None:
    """Over every build of every release: refused exactly where the matrix objects, and never sent to another such."""
    here = machine(driver, capability)
    for release, runtimes in BUILDS["builds"].items():
        for runtime in runtimes:
            versions = {"torch": f"{release}.0+cu{runtime.replace('.', '')}"}
            found = torch_builds.ways(here, versions, TABLE)
            assert not found or is_affected(here, versions)
            refused = torch_builds.refusals(here, versions, TABLE)
            assert (is_affected(here, versions)) == (f"cu{runtime.replace('.', '')}" in refused)
            for way in found:
                if not way.specifiers:
                    assert not is_affected(here, {"torch": f"{release}.0+{way.torch_backend}"})


def test_a_refused_build_is_told_in_one_line() -> None:
    assert torch_builds.refusals(machine("535.104.05", "12.0"), {"torch": "2.9.1"}, TABLE) == {
        "cu126": "not compiled for GPUs of compute capability 12.0",
        "cu130": "needs driver 580.65.06 or newer, this machine has 535.104.05",
    }


@pytest.mark.parametrize(
    ("version", "backend"),
    [
        ("2.5.1+cu118", "cu118"),
        ("2.0.1+cu117.with.pypi.cudnn", "cu117"),
        ("2.13.0+cpu", "cpu"),
        ("2.4.0+rocm6.1", "rocm6.1"),
        ("2.4.1+rocm6.2.4", "rocm6.2.4"),
        ("2.5.1", None),
        ("2.5.0a0+872d972e41.nv24.08", None),
        ("2.5.0a0+gitd990dad", None),
    ],
)
def test_the_label_names_the_build(version: str, backend: str | None) -> None:
    assert backend_of(version) == backend


def test_what_was_compiled_against_another_torch_is_named() -> None:
    before = {"torch": "2.5.1+cu124", "flash-attn": "2.7.4+cu12torch2.5cxx11abiFALSE", "deepspeed": "0.16.0"}
    after = {"torch": "2.6.0", "flash-attn": "2.7.4", "deepspeed": "0.16.1"}
    (note,) = torch_builds.rebuild_notes(before, after)
    assert note.startswith("flash-attn 2.7.4 was compiled against torch 2.5.1+cu124")
    assert len(torch_builds.rebuild_notes(before, {**after, "deepspeed": "0.16.0"})) == 2
    assert torch_builds.rebuild_notes(before, {**after, "torch": "2.5.0+cu124"}) == ()
    assert torch_builds.rebuild_notes({"torch": "2.5.1"}, after) == ()


def pair(torch: str, torchvision: str, label: str = "", runtime: str = "") -> list[Wheel]:
    """torch and its torchvision as their own metadata ties them together."""
    return [
        Wheel("torch", torch + label, ("filelock", runtime) if runtime else ("filelock",)),
        Wheel("torchvision", torchvision + label, (f"torch=={torch}",)),
    ]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    builds = {
        "cu118": [
            *pair("2.5.1", "0.20.1", "+cu118", "nvidia-cuda-runtime-cu11==11.8.89"),
            *pair("2.6.0", "0.21.0", "+cu118", "nvidia-cuda-runtime-cu11==11.8.89"),
        ],
        "cu126": pair("2.6.0", "0.21.0", "+cu126", "nvidia-cuda-runtime-cu12==12.6.77"),
    }
    others = [
        *pair("2.5.1", "0.20.1", runtime="nvidia-cuda-runtime-cu12==12.4.127"),
        *pair("2.6.0", "0.21.0", runtime="nvidia-cuda-runtime-cu12==12.4.127"),
        Wheel("nvidia-cuda-runtime-cu11", "11.8.89"),
        *(Wheel("nvidia-cuda-runtime-cu12", version) for version in ("12.4.127", "12.6.77")),
        Wheel("filelock", "3.16.1"),
    ]
    with serve(tmp_path_factory.mktemp("indexes"), builds, others) as variables:
        yield variables


@pytest.mark.parametrize(
    ("demands", "torch", "torchvision", "runtime"),
    [
        (Demands(), "2.5.1", "0.20.1", "12.4"),
        (Demands(torch_backend="cu118"), "2.5.1+cu118", "0.20.1+cu118", "11.8"),
        (Demands(torch_backend="cu126"), "2.6.0+cu126", "0.21.0+cu126", "12.6"),
        (Demands({"torch": ">=2.6"}, "cu118"), "2.6.0+cu118", "0.21.0+cu118", "11.8"),
    ],
)
def test_uv_takes_a_build_from_its_index_and_the_rest_from_the_users(
    indexes: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    demands: Demands,
    torch: str,
    torchvision: str,
    runtime: str,
) -> None:
    for name, value in indexes.items():
        monkeypatch.setenv(name, value)
    asked = tuple(Line(name, name, name) for name in ("torch", "torchvision"))
    wanted = Wanted(asked, {"torch": "2.5.1", "torchvision": "0.20.1"})
    versions = resolver.resolve(wanted, demands, Place(sys.executable)).versions
    assert (versions["torch"], versions["torchvision"], versions["filelock"]) == (torch, torchvision, "3.16.1")
    completed = matrix.infer(KNOWN, Environment({"distributions": versions})).view
    assert completed.get("cuda.runtime") == runtime


def test_a_build_that_its_index_does_not_have_cannot_be_had(
    indexes: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in indexes.items():
        monkeypatch.setenv(name, value)
    wanted = Wanted((Line("torch", "torch", "torch"),), {})
    with pytest.raises(Unsolvable):
        resolver.resolve(wanted, Demands({"torch": "<2.6"}, "cu126"), Place(sys.executable))
