"""What probes run by hand have to say."""

from __future__ import annotations

import json
from collections.abc import Sequence

from compatcheck.model import ProbeResult
from compatcheck.report.json import SCHEMA_VERSION, finite, probe_shape


def render(results: Sequence[ProbeResult], format_name: str) -> str:
    if format_name == "json":
        shape = {"schema_version": SCHEMA_VERSION, "probes": [probe_shape(result) for result in results]}
        return json.dumps(finite(shape), indent=2, ensure_ascii=False) + "\n"
    return "".join(f"{r.outcome:<8} {r.probe} ({r.seconds:.1f} s): {r.why}\n" for r in results)
