"""Probes measured in the tests' own process, which is quicker than a child and as good where nothing may crash."""

from __future__ import annotations

from typing import Any

import pytest


def measured(probe: Any, **request: Any) -> dict[str, Any]:
    """What the child would send of a probe on the CPU; skips where there is no torch."""
    pytest.importorskip("torch")
    found = probe.measure({"seed": 0, "device": "cpu", **request}, lambda stage: None)
    if isinstance(found, dict):
        return found
    rows = []
    while True:
        try:
            rows.append(next(found))
        except StopIteration as end:
            return {"rows": rows, **(end.value or {})}
