"""DeepSpeed on two processes: this stack is right, planted and real faults are convicted."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from uv import find_uv_bin

from compatcheck.environment import Target
from compatcheck.probes import run
from compatcheck.probes.distributed import zero_backward_passes, zero_gradients
from tests.probes.conftest import Plant, target
from tests.probes.test_distributed import IN_EVERY_PROCESS, measured

pytestmark = [pytest.mark.stack, pytest.mark.slow]

Needs = Callable[..., None]

DIVIDED_TWICE = """
import deepspeed
original = deepspeed.DeepSpeedEngine.backward
def backward(self, loss, *arguments, **options):
    return original(self, loss / self.gradient_accumulation_steps(), *arguments, **options)
deepspeed.DeepSpeedEngine.backward = backward
"""
STAGE_2 = {"stages": [2], "dtype": "float32"}


@pytest.fixture
def deepspeed(stack: Target, needs: Needs) -> Version:
    needs("deepspeed")
    code = "from importlib.metadata import version; print(version('deepspeed'))"
    return Version(
        subprocess.run([stack.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    )


def test_every_stage_of_this_deepspeed_is_right(stack: Target, deepspeed: Version) -> None:
    outcome, why, rows = measured("zero_gradients", stack, {})
    assert outcome == "pass", why
    assert {row["variant"][:6] for row in rows} == {"ZeRO-0", "ZeRO-1", "ZeRO-2", "ZeRO-3", "one pr"}


@pytest.mark.parametrize("clip", [0.1, 10.0])
def test_clipped_steps_of_this_deepspeed_are_right(stack: Target, deepspeed: Version, clip: float) -> None:
    training = {"deepspeed": {"zero_stage": 2, "gradient_clipping": clip}}
    outcome, why, rows = measured("zero_training", stack, {"training": training, "dtype": "float32"})
    assert outcome == "pass", why
    assert max(row["theta"] for row in rows) < 1


def test_gradients_divided_twice_are_convicted(plant: Plant, deepspeed: Version) -> None:
    outcome, why, rows = measured("zero_gradients", plant(IN_EVERY_PROCESS.format(code=DIVIDED_TWICE)), STAGE_2)
    assert (outcome, "passing there: one process" in why) == ("fail", True), why
    assert {round(row["ratio"], 3) for row in rows if row["case"] == "4 backward passes"} == {1.0, 0.25}


def test_passes_without_a_boundary_are_judged_only_where_asked(stack: Target, deepspeed: Version) -> None:
    """Managed and boundary pass beside them."""
    outcome, why, rows = measured("zero_backward_passes", stack, STAGE_2)
    assert outcome == "pass", why
    bare = [row for row in rows if row["variant"] == "ZeRO-2, bare"]
    assert [row["recorded"] for row in bare] == ["DeepSpeed does not officially support this use"]
    asked = [{key: row[key] for key in row if key != "recorded"} for row in rows]
    outcome, why = zero_backward_passes.judge({"rows": asked})
    assert outcome == ("pass" if deepspeed < Version("0.17.6") else "fail")
    if outcome == "fail":
        assert "passing there: ZeRO-2, boundary, ZeRO-2, managed, one process" in why


def test_default_clipping_is_judged_only_where_asked(stack: Target, deepspeed: Version) -> None:
    outcome, why, rows = measured("zero_default_clipping", stack, {"stages": [2]})
    assert outcome == "pass", why
    assert [row["recorded"] for row in rows if row["variant"].endswith("left out")]
    outcome, why, rows = measured("zero_default_clipping", stack, {"stages": [0, 2], "unclipped": True})
    assert outcome == ("fail" if deepspeed >= Version("0.19.3") else "pass")
    if outcome == "fail":
        assert "passing there: ZeRO-0, gradient_clipping 0, ZeRO-2, gradient_clipping 0, one process" in why


def test_a_network_built_inside_zero_init_trains(stack: Target, deepspeed: Version) -> None:
    outcome, why, rows = measured("zero_init", stack, {})
    assert outcome == "pass", why
    imports = {row["variant"]: row for row in rows if row["case"].startswith("first import")}
    assert "error" not in imports["before zero.Init"]
    assert "recorded" in imports["inside zero.Init"]


def test_the_settings_of_the_training_are_tried() -> None:
    section = {"zero_stage": 1, "overlap_comm": True, "reduce_scatter": False, "offload_optimizer_device": "cpu"}
    training = {"gradient_accumulation_steps": 2, "deepspeed": section}
    cases = zero_gradients._cases({"seed": 0, "training": training}, "cuda")
    assert {case["stage"] for case in cases} == {1}
    assert {case["passes"] for case in cases} == {1, 2}
    wanted = {"overlap_comm": True, "reduce_scatter": False, "offload_optimizer": {"device": "cpu"}}
    assert wanted in [case["zero"] for case in cases]


@pytest.mark.parametrize(("release", "outcome"), [("0.17.5", "pass"), ("0.17.6", "fail"), ("0.18.6", "pass")])
def test_real_releases(stack: Target, deepspeed: Version, tmp_path: Path, release: str, outcome: str) -> None:
    """Beside this stack's torch: 0.17.6 keeps the last micro-batch alone in ZeRO-2."""
    options = ["--no-deps", "--no-build-isolation", "--python", stack.executable, "--target", str(tmp_path / "site")]
    if subprocess.run([find_uv_bin(), "pip", "install", *options, f"deepspeed=={release}"], check=False).returncode:
        pytest.skip(f"deepspeed {release} could not be installed")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"} exec {stack.executable} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    request: dict[str, Any] = {**STAGE_2, "device": "cpu"}
    result = run("zero_backward_passes", target(str(script)), request)
    assert result.outcome == outcome, result.why
    assert result.measured["child"]["modules"]["deepspeed"]["version"].startswith(release)
