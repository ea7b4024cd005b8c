"""The measure itself: what counts as solved, helped, alarm and noise. The cases are made up, the matrix is our own."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.results.findings import Remedy
from tests.conftest import ROOT
from tools import score_cases
from tools.labelled import agreement, pasted, snapshot
from tools.labelled import fix as fixes

_REENTRANT = "training.gradient_checkpointing_kwargs.use_reentrant"
CASE: dict[str, Any] = {
    "id": "made__up__1",
    "env": {"python": "3.10", "os": "Ubuntu 22.04", "packages": {"deepspeed": "0.14.4", "torch": "2.3.1+cu121"}},
    "env_block": "deepspeed 0.14.4, torch 2.3.1+cu121, Python 3.10, Ubuntu 22.04",
    "context": {"method": "full", "zero_stage": 2, "other": "deepspeed overlap_comm true"},
    "cause": {"kind": "version-combo", "packages": ["deepspeed"], "summary": "a race"},
    "fix": {"packages": {}, "config": {"zero_optimization.overlap_comm": False}, "summary": "off"},
    "confirmed_by": "maintainer",
    "detectable_from_env": True,
}
HEALTHY = {"id": "lock-1", "env": {"packages": {"torch": "2.6.0", "torchvision": "0.21.0"}}, "context": {}}


def changed(**changes: Any) -> dict[str, Any]:
    """The case with values at ``section__key`` replaced."""
    case = copy.deepcopy(CASE)
    for path, value in changes.items():
        *parents, last = path.split("__")
        section = case
        for parent in parents:
            section = section[parent]
        section[last] = value
    return case


@pytest.fixture(scope="module")
def known() -> matrix.Matrix:
    return matrix.load()


def status(known: matrix.Matrix, case: dict[str, Any]) -> str | None:
    return score_cases.score(known, case).status


def test_a_finding_that_the_fix_clears_solves_the_case(known: matrix.Matrix) -> None:
    assert status(known, CASE) == "affected"


def test_a_pin_of_the_fix_within_the_range_of_a_remedy_solves_it_too(known: matrix.Matrix) -> None:
    assert status(known, changed(fix__config={}, fix__packages={"deepspeed": ">=0.19.4"})) == "affected"


def test_a_finding_on_another_package_does_not(known: matrix.Matrix) -> None:
    assert status(known, changed(cause__packages=["bitsandbytes"])) is None


def test_a_fix_that_no_remedy_names_does_not_though_it_clears_the_finding(known: matrix.Matrix) -> None:
    assert status(known, changed(fix__config={"tokenizer": "another"})) is None
    assert status(known, changed(fix__config={}, fix__packages={"deepspeed": "<0.12"})) is None


def test_a_finding_that_is_still_there_after_the_fix_does_not_though_a_remedy_names_it(known: matrix.Matrix) -> None:
    assert status(known, changed(fix__config={}, fix__packages={"deepspeed": "==0.14.4"})) is None
    assert status(known, changed(fix__config={"overlap_comm": "off where it hurts"})) is None


def test_a_finding_for_want_of_a_fact_helps(known: matrix.Matrix) -> None:
    assert status(known, changed(context__other=None)) == "possible"


def test_what_is_no_version_stays_unknown() -> None:
    environment = snapshot.snapshot(changed(env__packages={"deepspeed": "main", "torch": ">=2.0"}))
    assert environment.facts["distributions"] == {}
    assert environment.facts["distribution_ranges"] == {"torch": ">=2.0"}
    assert set(environment.reasons) == {"distributions.deepspeed"}


@pytest.mark.parametrize(
    ("packages", "runtime", "driver", "expected"),
    [
        ({"torch": "2.3.1"}, "12.1", None, {"runtime": "12.1"}),
        ({"torch": "2.3.1+cu118"}, "12.1", None, {}),
        ({"torch": "2.3.1"}, "12.4.131", "550.144.03", {"toolkit": "12.4", "driver": "550.144.03"}),
        ({"torch": "2.3.1"}, "rocm6.0", "CUDA 12.2 driver", {"driver_api": "12.2"}),
        ({"nvidia-cudnn-cu12": "9.1.0.70"}, None, None, {"cudnn": "9.1.0.70"}),
    ],
)
def test_the_cuda_versions_of_a_case_are_told_apart(
    packages: dict[str, str], runtime: str | None, driver: str | None, expected: dict[str, str]
) -> None:
    case = changed(env__packages=packages, env__cuda_runtime=runtime, env__cuda_driver=driver)
    assert snapshot.snapshot(case).facts.get("cuda", {}) == expected


@pytest.mark.parametrize(
    ("pinned", "installed", "moved"),
    [
        ("==2.1.2", "2.2.1", "2.1.2"),
        (">=2.6", "2.5.0+cu124", "2.6+cu124"),
        (">=2.6", "2.6.1", "2.6.1"),
        ("<5", "5.1.0", "4.99"),
        ("<4.44", "4.44.2", "4.43.99"),
        (">0.19.3", "0.19.3", "0.19.4"),
        ("!=4.47.0", "4.47.0", "4.47.1"),
        ("!=2.9.*", "2.9.1", "2.8.99"),
        ("==2.8.*", None, "2.8"),
        ("==2.1.2+cu121", "2.1.0+cpu", "2.1.2+cu121"),
        ("from source", "1.0", None),
    ],
)
def test_a_pin_moves_a_version_no_further_than_it_must(pinned: str, installed: str | None, moved: str | None) -> None:
    assert fixes.moved_to(pinned, installed) == moved


@pytest.mark.parametrize(
    ("pinned", "installed", "moved"),
    [
        (">4.46.3", "4.46.3", "4.47.0"),
        ("<4.44", "4.44.2", "4.43.4"),
        ("!=4.47.0", "4.47.0", "4.47.1"),
        ("<5", None, "4.57.6"),
        (">=4.46.1", None, "4.46.1"),
        ("==4.46.0.dev0", "4.44.2", "4.46.0.dev0"),
    ],
)
def test_a_pin_leads_to_a_release_that_was_published(pinned: str, installed: str | None, moved: str) -> None:
    published = ("4.43.3", "4.43.4", "4.44.2", "4.46.1", "4.46.3", "4.47.0", "4.47.1", "4.57.6", "5.0.0")
    assert fixes.moved_to(pinned, installed, published) == moved


@pytest.mark.parametrize(
    ("pinned", "torch", "runtime", "after"),
    [
        (">=2.7.0", "2.0.1", "11.7", ("2.7.0", None)),
        (">=2.7.0", "2.5.1", "11.8", ("2.7.0", "11.8")),
        ("==2.0.1", "2.1.0+cu121", "12.1", ("2.0.1", None)),
        ("==2.2.2", "2.1.0+cu121", "12.1", ("2.2.2+cu121", "12.1")),
    ],
)
def test_another_torch_is_a_build_that_exists(
    pinned: str, torch: str, runtime: str, after: tuple[str, str | None]
) -> None:
    given = Environment({"distributions": {"torch": torch}, "cuda": {"runtime": runtime}})
    fixed = fixes.applied(given, {"packages": {"torch": pinned}, "config": {}}, matrix.load()).facts
    assert (fixed["distributions"]["torch"], fixed["cuda"].get("runtime")) == after


@pytest.mark.parametrize(
    ("remedy", "fix", "agrees"),
    [
        (Remedy("pins", "w", {"torch": ">=2.5.1"}), {"packages": {"torch": ">=2.6"}, "config": {}}, True),
        (Remedy("pins", "w", {"torch": "<2.5"}), {"packages": {"torch": ">=2.6"}, "config": {}}, False),
        (Remedy("pins", "w", {"peft": ">=0.18"}), {"packages": {"transformers": "<5"}, "config": {}}, False),
        (
            Remedy("config", "w", config={"training.dtype": "bfloat16"}),
            {"packages": {}, "config": {"bf16": True}},
            True,
        ),
        (
            Remedy("config", "w", config={"training.dtype": "float16"}),
            {"packages": {}, "config": {"bf16": True}},
            False,
        ),
        (
            Remedy("config", "w", config={"training.dtype": "float16"}),
            {"packages": {}, "config": {"bf16": False}},
            True,
        ),
        (
            Remedy("config", "w", config={"training.attention": "eager"}),
            {"packages": {}, "config": {"attn_implementation": "sdpa or eager"}},
            True,
        ),
        (
            Remedy("config", "w", config={"training.attention": "eager"}),
            {"packages": {}, "config": {"attn_implementation": "sdpa"}},
            False,
        ),
        (
            Remedy("environ", "w", environ={"NCCL_CUMEM_ENABLE": "0"}),
            {"packages": {}, "config": {"NCCL_CUMEM_ENABLE": "0"}},
            True,
        ),
        (
            Remedy("rebuild", "download the model's code again"),
            {"packages": {}, "config": {"model_revision": "the newest"}},
            True,
        ),
        (
            Remedy("rebuild", "compile it on this machine"),
            {"packages": {}, "config": {"model_revision": "the newest"}},
            False,
        ),
        (Remedy("driver", "w"), {"packages": {}, "config": {"nvidia_driver": "one for CUDA 12.8"}}, True),
    ],
)
def test_a_remedy_agrees_with_a_fix(remedy: Remedy, fix: dict[str, Any], agrees: bool) -> None:
    assert agreement.agrees_with(remedy, fix) is agrees


@pytest.mark.parametrize(
    ("given", "fix", "path", "after"),
    [
        ({}, {"zero_optimization.overlap_comm": False}, "training.deepspeed.overlap_comm", False),
        ({}, {"gradient_checkpointing_kwargs.use_reentrant": False}, _REENTRANT, False),
        ({}, {"optim": "adamw_torch"}, "training.optimizer", "adamw_torch"),
        ({}, {"attn_implementation": "sdpa or eager"}, "training.attention", "sdpa"),
        ({}, {"compile": False}, "training.torch_compile", False),
        ({"training": {"fsdp": {}}}, {"fsdp": None}, "training.fsdp", None),
        ({"model": {"traits": ["post-init-never-called"]}}, {"model_file": "call post_init"}, "model.traits", []),
        ({"cuda": {"runtime": "11.7", "toolkit": "12.1"}}, {"cuda_toolkit": "that of torch"}, "cuda.toolkit", "11.7"),
        ({"distributions": {"torch": "2.0.1+cu117"}}, {"cuda_toolkit": "that of torch"}, "cuda.toolkit", "11.7"),
    ],
)
def test_a_setting_of_a_fix_is_the_fact_it_gives(
    given: dict[str, Any], fix: dict[str, Any], path: str, after: object
) -> None:
    fixed = fixes.applied(Environment(given), {"packages": {}, "config": fix}, matrix.load())
    assert fixed.get(path) == after


def test_another_python_is_a_fix() -> None:
    given = Environment({"python": "3.13.1"})
    assert fixes.applied(given, {"packages": {"python": "<3.13"}, "config": {}}, matrix.load()).facts == {
        "python": "3.12.99"
    }


def test_a_package_that_demands_a_torch_brings_it() -> None:
    given = Environment({"distributions": {"torch": "2.2.0+cu118", "xformers": "0.0.24+cu118"}})
    fixed = fixes.applied(given, {"packages": {"xformers": "==0.0.23"}, "config": {}}, matrix.load()).facts
    assert fixed["distributions"]["torch"] == "2.1.1+cu118"


def test_pasted_text_and_snapshot_are_compared_on_what_both_hold(known: matrix.Matrix) -> None:
    assert pasted.compared(known, CASE) == ([], True)
    differences, same = pasted.compared(known, changed(env_block="deepspeed 0.19.9, Python 3.11"))
    assert [each.what for each in differences][:2] == ["distributions.deepspeed", "python"] and not same


def test_the_script_prints_the_four_figures_and_what_is_unsolved(tmp_path: Path) -> None:
    reports, clean = tmp_path / "reports.jsonl", tmp_path / "clean.jsonl"
    unsolved = changed(id="made__up__2", fix__config={"tokenizer": "another"}, detectable_from_env=False)
    reports.write_text(f"{json.dumps(CASE)}\n{json.dumps(unsolved)}\n", encoding="utf-8")
    broken = {**HEALTHY, "id": "lock-2", "env": {"packages": {"torch": "2.6.0", "torchvision": "0.20.0"}}}
    clean.write_text(f"{json.dumps(HEALTHY)}\n{json.dumps(broken)}\n", encoding="utf-8")
    command = [sys.executable, str(ROOT / "tools" / "score_cases.py"), str(reports), str(clean)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "all         solved 1/2 (50%)  helped 1/2 (50%)" in said
    assert "detectable  solved 1/1 (100%)  helped 1/1 (100%)" in said
    assert "alarms 1/2" in said and "alarm  lock-2" in said
    assert "made__up__2" in said and "made__up__1" not in said
    told = subprocess.run([*command, "--pasted"], capture_output=True, text=True, check=True).stdout
    assert "2 of 2 pasted texts give the findings of their snapshot" in told


def test_the_framework_of_a_report_is_what_it_runs_through() -> None:
    environment = snapshot.snapshot(changed(context__framework="unsloth", context__other=None))
    assert environment.facts["training"]["unsloth"] is True
    assert "use_vllm" not in environment.facts["training"]


def test_a_framework_that_is_named_is_there_in_some_version() -> None:
    environment = snapshot.snapshot(changed(context__framework="lmdeploy, DeepSpeed and our demo"))
    assert environment.facts["distribution_ranges"] == {"lmdeploy": ""}


def test_a_report_has_its_day_and_the_package_of_its_repository() -> None:
    case = {**changed(env__packages={"torch": "2.5.0"}), "source": "https://github.com/microsoft/DeepSpeed/issues/1"}
    for written, day in (("2024-06-17", "2024-06-17"), ("2024-02", "2024-02-29")):
        environment = snapshot.snapshot({**case, "date": written})
        assert environment.facts["report"] == {"date": day, "repository": "microsoft/DeepSpeed"}
        assert environment.facts["distribution_ranges"]["deepspeed"] == ""
    assert "report" not in snapshot.snapshot(case, reported=False).facts


def test_a_report_on_several_models_is_judged_by_the_first() -> None:
    for models in ("vidore/colqwen2-v1.0, vidore/colqwen2.5-v0.2", "vidore/colqwen2-v1.0 / another one"):
        given = snapshot.snapshot(changed(context__model=models))
        assert given.facts["model"] == {"name": "vidore/colqwen2-v1.0"}


def test_another_gpu_is_a_fix(known: matrix.Matrix) -> None:
    packages = {"triton": "2.3.1"}
    case = changed(
        env__packages=packages, context__framework="unsloth", context__zero_stage=None, cause__packages=["triton"]
    )
    case["env"]["gpus"] = ["Tesla P100-PCIE-16GB"]
    assert status(known, {**case, "fix": {"packages": {}, "config": {"gpu": "a T4, of capability 7.5"}}}) == "affected"
    assert status(known, {**case, "fix": {"packages": {}, "config": {"gpu": "another P100"}}}) is None
