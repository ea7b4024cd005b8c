"""A GPU that is known by name alone gets its compute capability from the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compatcheck.matrix._load import Matrix
from compatcheck.model import Environment


def with_compute_capabilities(matrix: Matrix, environment: Environment) -> Environment:
    gpus = environment.facts.get("gpus")
    if not gpus or all("compute_capability" in gpu for gpu in gpus):
        return environment
    rows = matrix.table("gpu-compute-capability")["compute_capability"]
    return environment._replace(facts={**environment.facts, "gpus": [_completed(gpu, rows) for gpu in gpus]})


def _completed(gpu: Mapping[str, Any], rows: Mapping[str, str]) -> Mapping[str, Any]:
    found = None if "compute_capability" in gpu else compute_capability(gpu.get("name", ""), rows)
    return {**gpu, "compute_capability": found} if found else gpu


def compute_capability(name: str, rows: Mapping[str, str]) -> str | None:
    """The capability of the longest row whose words stand in the name, or None for a name the table does not know."""
    words = _words(name)
    matching = [row for row in rows if _stands_in(_words(row), words)]
    return rows[max(matching, key=lambda row: len(_words(row)))] if matching else None


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+\d+[a-z]*|\d+|[a-z]+", text.lower())


def _stands_in(row: list[str], words: list[str]) -> bool:
    remaining = iter(words)
    return all(word in remaining for word in row)
