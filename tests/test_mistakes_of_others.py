"""Verdicts that other checkers of training environments were seen to get wrong: none of them is ours.

Each case is told with the project that gets it wrong and the truth it misses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix._traits import trait_finder
from compatcheck.matrix.matching.match import match_table
from compatcheck.packages.versions import contains, parse_range, parse_version
from compatcheck.pipelines.check import check, weigh
from compatcheck.results.findings import ProbeResult

DRIVER, ARCHITECTURE = "CC-2026-0001", "CC-2026-0002"
KNOWN = matrix.load()


def found(**facts: Any) -> Mapping[str, str]:
    """The status of each finding, by entry."""
    return {finding.id: finding.status for finding in check(Environment(facts), KNOWN).findings}


def gpu(capability: str, memory_mib: int = 24576, **more: str) -> dict[str, Any]:
    return {"compute_capability": capability, "memory_mib": memory_mib, **more}


def test_driver_535_runs_torch_for_cuda_12_4() -> None:
    """env-doctor calls it critical; any driver of CUDA 12 runs what any CUDA 12 built."""
    cuda = {"runtime": "12.4", "driver": "535.104.05", "driver_api": "12.2"}
    assert DRIVER not in found(distributions={"torch": "2.5.0+cu124"}, cuda=cuda)


def test_driver_550_does_not_run_torch_for_cuda_13() -> None:
    cuda = {"runtime": "13.0", "driver": "550.54.14", "driver_api": "12.4"}
    assert found(distributions={"torch": "2.9.0+cu130"}, cuda=cuda)[DRIVER] == "affected"


def test_torch_2_7_is_fine_on_python_3_13() -> None:
    """env-doctor calls it incompatible."""
    assert not found(python="3.13.1", distributions={"torch": "2.7.1"})


def test_a_new_driver_does_not_help_an_old_card() -> None:
    """uv picks a build by the driver alone: https://github.com/astral-sh/uv/issues/14742"""
    cuda = {"runtime": "13.0", "driver": "580.65.06", "driver_api": "13.0"}
    old = gpu("6.1", 11264, name="NVIDIA GeForce GTX 1080 Ti")
    seen = found(distributions={"torch": "2.9.0+cu130"}, cuda=cuda, gpus=[old], platform={"machine": "x86_64"})
    assert seen[ARCHITECTURE] == "affected"


def test_a_card_newer_than_the_wheel_is_seen() -> None:
    cuda = {"runtime": "12.4", "driver": "570.26", "driver_api": "12.8"}
    new = gpu("12.0", 32607, name="NVIDIA GeForce RTX 5090")
    seen = found(distributions={"torch": "2.6.0+cu124"}, cuda=cuda, gpus=[new], platform={"machine": "x86_64"})
    assert seen[ARCHITECTURE] == "affected"


@pytest.mark.parametrize("toolkit", ["11.8", "12.8", None])
def test_a_compiler_of_another_cuda_is_no_fault(toolkit: str | None) -> None:
    """Many take the toolkit's version for the one that counts; ds_report falls over where there is none."""
    cuda = {"runtime": "12.4", "driver": "550.54.14", "driver_api": "12.4", "toolkit": toolkit}
    assert not found(distributions={"torch": "2.5.1+cu124"}, cuda=cuda, gpus=[gpu("8.0", 40960)])


def test_a_vendor_build_is_not_skipped() -> None:
    """Specifiers of PEP 440 leave out every pre-release, and so all of NVIDIA's containers."""
    built = Environment({"distributions": {"torch": "2.5.0a0+872d972e41.nv24.08"}})
    verdict = match_table({"distributions.torch": ">=2.4.0,<2.5.0"}, built, trait_finder(KNOWN.table))
    assert verdict.holds is None
    assert verdict.narrowed


def test_a_post_release_lies_above_its_release() -> None:
    version = parse_version("2.7.4.post1")
    assert version is not None
    assert not contains(parse_range("<=2.7.4"), version)
    assert contains(parse_range(">2.7.4,<2.8"), version)


@pytest.mark.parametrize(("build", "broken"), [("cu124", True), ("cu126", False)])
def test_one_wheel_fits_one_build_of_a_release_and_not_the_other(build: str, broken: bool) -> None:
    """pip, uv and pip-audit see one version of torch; its builds for CUDA 12.4 and 12.6 have two C++ interfaces."""
    wheel = "2.7.4.post1+cu12torch2.6cxx11abiTRUE"
    seen = found(distributions={"torch": f"2.6.0+{build}", "flash-attn": wheel}, platform={"system": "Linux"})
    assert ("affected" in seen.values()) is broken, seen


def test_each_gpu_is_judged_by_itself() -> None:
    """Cards that are all too old are each told; a spare one beside a card that runs is no fault."""
    cuda = {"runtime": "13.0", "driver": "580.65.06", "driver_api": "13.0"}
    common = {"distributions": {"torch": "2.9.0+cu130"}, "cuda": cuda, "platform": {"machine": "x86_64"}}
    new, volta, pascal = gpu("9.0", 81559), gpu("7.0", 32768, name="Tesla V100"), gpu("6.0", 16384, name="Tesla P100")
    both = check(Environment({"gpus": [volta, pascal], **common}), KNOWN).findings
    assert sorted(f.summary.split(" has ")[0] for f in both if f.id == ARCHITECTURE) == ["Tesla P100", "Tesla V100"]
    assert ARCHITECTURE not in found(gpus=[new, pascal], **common)


def test_a_machine_without_gpu_is_undetermined_and_passes(tmp_path: Path) -> None:
    """A checker that fails on a continuous-integration machine is switched off there."""
    snapshot = {"schema_version": 1, "distributions": {"torch": "2.9.0+cu130"}, "gpus": []}
    (tmp_path / "ci.json").write_text(json.dumps(snapshot), encoding="utf-8")
    done = _compatcheck("check", "--snapshot", str(tmp_path / "ci.json"))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("outcome", ["skip", "crash", "timeout"])
def test_a_trial_that_could_not_run_is_no_pass(outcome: Any) -> None:
    """DCGM called a memory test that could not allocate a success: https://github.com/NVIDIA/DCGM/issues/284"""
    facts = {"distributions": {"torch": "2.5.0+cu118"}, "cuda": {"runtime": "11.8"}, "gpus": [gpu("8.0", 81920)]}
    training = {"attention": "sdpa", "per_device_train_batch_size": 2, "dtype": "bfloat16"}
    suspected = next(f for f in check(Environment({**facts, "training": training}), KNOWN).findings if f.probe_name)
    assert weigh(suspected, ProbeResult(suspected.probe_name or "", outcome, "no memory")).status == suspected.status


@pytest.mark.parametrize("torch", ["", "raise RuntimeError('libcudart.so.11.0: cannot open shared object file')\n"])
def test_the_report_is_whole_where_torch_is_missing_or_broken(tmp_path: Path, torch: str) -> None:
    """collect_env dies of a torch that cannot be imported: https://github.com/pytorch/pytorch/issues/47397"""
    venv.create(tmp_path / "v", symlinks=True)
    if torch:
        site = next((tmp_path / "v" / "lib").iterdir()) / "site-packages"
        (site / "torch").mkdir()
        (site / "torch" / "__init__.py").write_text(torch, encoding="utf-8")
        (site / "torch-2.0.1.dist-info").mkdir()
        (site / "torch-2.0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.0.1\n")
    done = _compatcheck("env", "--python", str(tmp_path / "v" / "bin" / "python"), PATH="")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["distributions"].get("torch") == ("2.0.1" if torch else None)


def _compatcheck(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compatcheck", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environ}, timeout=120)
