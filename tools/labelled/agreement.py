"""Whether a finding speaks of the cause of a report, and whether one of its remedies is the known fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from compatcheck.packages.names import normalised
from compatcheck.report.steps import step_texts
from compatcheck.results.findings import Finding, Remedy
from tools.labelled.fix import below, specifier
from tools.labelled.settings import DTYPES, NAMES


def speaks_of(finding: Finding, case: Mapping[str, Any]) -> bool:
    """Whether a finding is about a package of the cause or of the fix."""
    named = {normalised(name) for name in (*case["cause"]["packages"], *case["fix"]["packages"])}
    return bool(named & {normalised(name) for name in finding.packages})


def agrees_with(remedy: Remedy, fix: Mapping[str, Any]) -> bool:
    """Whether a way out is the known one: a pin that a version of the fix satisfies, or the same setting."""
    for name, pinned in fix["packages"].items():
        wanted = {normalised(each): specifier for each, specifier in remedy.pins.items()}.get(normalised(name))
        if wanted is not None and _overlap(wanted, str(pinned)):
            return True
    words = " ".join(
        (
            remedy.kind,
            *_flat_words(remedy.config),
            *_flat_words(remedy.environ),
            *filter(None, (remedy.code, remedy.action)),
            *step_texts(remedy),
            *([remedy.why] if remedy.kind == "rebuild" else []),
        )
    ).lower()
    return any(_same_setting(key, value, words) for key, value in fix["config"].items())


def _flat_words(settings: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key}={value}" for key, value in settings.items())


def _same_setting(key: str, value: Any, words: str) -> bool:
    """Whether a remedy names the setting that the fix changes, with its value where that is a plain word."""
    last = key.lower().rpartition(".")[2]
    spelled = {
        "bf16": ("bf16", "dtype"),
        "fp16": ("fp16", "dtype"),
        "torch_dtype": ("dtype",),
        "attn_implementation": ("attention", "attn_implementation"),
        "precision": ("dtype", "bf16"),
        "amp_dtype": ("dtype",),
        "nvidia_driver": ("driver",),
        "cuda_toolkit": ("toolkit", "nvcc"),
        "wheel_tag": ("wheel",),
        "flash_attn_wheel_abi": ("wheel",),
        "model_file": ("model's",),
        "model_revision": ("model's",),
    }.get(last, (last, NAMES.get(last, last)))
    named = any(re.search(rf"(?<![a-z0-9]){re.escape(name)}", words) for name in spelled)
    if not named or isinstance(value, (dict, list)):
        return named
    options = [option.strip().lower() for option in re.split(r"\bor\b|/", str(value))]
    names = [*options, *(DTYPES[option] for option in options if option in DTYPES)]
    if last in ("bf16", "fp16") and isinstance(value, bool):
        kept = {DTYPES[last]} if value else {"float16", "bfloat16", "float32"} - {DTYPES[last]}
        return any(re.search(rf"(?<![a-z]){name}", words) for name in kept)
    return any(name in words for name in names) or not re.fullmatch(r"[\w.]+( or [\w.]+)*", str(value))


def _overlap(wanted: str, pinned: str) -> bool:
    """Whether a version of the fix lies in the range of the remedy: the bounds of both are tried on both."""
    try:
        ours, theirs = SpecifierSet(wanted, prereleases=True), SpecifierSet(specifier(pinned), prereleases=True)
    except InvalidSpecifier:
        return False
    bounds = [Version(each.version.removesuffix(".*")) for each in (*ours, *theirs)]
    trials = [
        *bounds,
        *(Version(f"{'.'.join(map(str, each.release))}.99") for each in bounds),
        *(below(each) for each in bounds),
    ]
    return any(ours.contains(each) and theirs.contains(each) for each in trials)
