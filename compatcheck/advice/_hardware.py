"""Remedies that the user's own GPUs rule out."""

from __future__ import annotations

from collections.abc import Sequence

from compatcheck.environment import Environment
from compatcheck.packages.versions import parse_version
from compatcheck.results.findings import Remedy

_FIRST_WITH_BFLOAT16 = parse_version("8.0")


def possible_remedies(remedies: Sequence[Remedy], environment: Environment) -> tuple[Remedy, ...]:
    """The remedies less bfloat16 on GPUs without it; all where nothing else would be left."""
    if not _lacks_bfloat16(environment):
        return tuple(remedies)
    return tuple(each for each in remedies if "bfloat16" not in each.config.values()) or tuple(remedies)


def _lacks_bfloat16(environment: Environment) -> bool:
    """Whether a known NVIDIA GPU is older than compute capability 8.0."""
    stated = (gpu.get("compute_capability") for gpu in environment.facts.get("gpus") or ())
    versions = [parse_version(str(each)) for each in stated if each]
    return any(
        each is not None and _FIRST_WITH_BFLOAT16 is not None and each < _FIRST_WITH_BFLOAT16 for each in versions
    )
