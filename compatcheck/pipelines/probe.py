"""The pipeline of `compatcheck probe`: what to ask, and asking it in the target's own interpreter."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from compatcheck import probes
from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.installed import trust
from compatcheck.installed.collect import collect
from compatcheck.installed.target import find_target
from compatcheck.pipelines.check import OnProbe, probe_context, probe_memory
from compatcheck.project.model_files.model import model_config
from compatcheck.project.overlay import with_paths
from compatcheck.results.findings import ProbeResult


def context(model: str | None, training: str | None) -> dict[str, Any]:
    """What the user's model and settings make of a request; ``model`` counts over the one the settings name.

    Raises InputError where the settings or the architecture cannot be read from what is named.
    """
    asked: dict[str, Any] = {}
    if training is not None:
        asked = probe_context(with_paths(Environment({}), [training]))
        if "training" not in asked:
            seen, advice = "the file contains no training setting", "pass a training configuration or a launch script"
            raise InputError("reading the training settings of", training, seen, advice)
    if model is not None:
        asked["config"], folder = model_config(model)
        if not asked["config"]:
            raise InputError(
                "reading the architecture of",
                model,
                "the config.json of the model is empty",
                "pass the model's own config.json",
            )
        asked.pop("model_folder", None)
        asked.update({"model_folder": folder} if folder else {})
    return asked


def probe(
    names: Sequence[str],
    asked: Mapping[str, object],
    python: str | None = None,
    *,
    budget_seconds: float | None = None,
    fresh: bool = False,
    on_probe: OnProbe | None = None,
) -> tuple[ProbeResult, ...]:
    """Ask the same of each named probe, in the interpreter that ``python`` names or the active one."""
    target = find_target(python, os.environ)
    if python is None:
        trust.require(target, "running probes in", os.environ)
    memory = probe_memory(collect(target, architectures=False), fresh)
    trials = [(name, dict(asked)) for name in names]
    return probes.run_all(
        trials, target, budget_seconds=budget_seconds, on_progress=on_probe, memory=memory, partial=True
    )
