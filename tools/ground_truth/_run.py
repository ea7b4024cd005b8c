"""The stages of a stack, run in its interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tools.ground_truth import _stages

ALONE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def applicable(stages: Iterable[str], installed: Iterable[str]) -> list[str]:
    """The stages whose packages are all installed."""
    names = set(installed)
    return [stage for stage in stages if names.issuperset(each.lower() for each in _stages.needs(stage))]


def outcomes(
    python: Path, room: Path, ends: float, stages: Iterable[str], report: Path | None = None
) -> dict[str, Mapping[str, Any] | None]:
    """What each stage failed with, or None; raises TimeoutExpired where all together take too long.

    Every environment of a folder runs under one path, so that the bytecode of a release is compiled once for all.
    """
    room.mkdir(parents=True, exist_ok=True)
    venv = python.parent.parent
    shared = venv.parent / "shared"
    shared.unlink(missing_ok=True)
    shared.symlink_to(venv, target_is_directory=True)
    command = [str(shared / "bin" / python.name), _stages.__file__, str(room), *stages]
    left = max(1.0, ends - time.monotonic())
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ = {**kept, **ALONE, "PYTHONPYCACHEPREFIX": str(venv.parent / "bytecode")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=left, cwd=room, env=environ, errors="replace"
    )
    if report:
        report.write_text(done.stderr, encoding="utf-8")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["stage"]: each["verdict"] for each in said}
