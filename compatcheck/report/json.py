"""The JSON report: a shape of its own, versioned apart from everything inside."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compatcheck.environment import dump
from compatcheck.report.steps import step_texts
from compatcheck.results.findings import Finding, ProbeResult, Remedy, Report, fingerprint

if TYPE_CHECKING:
    from compatcheck.results.cluster import ClusterReport
    from compatcheck.results.logs import Diagnosis

SCHEMA_VERSION = 1


def render(report: Report, *, exit_reason: str, refuted: bool = False) -> str:
    shape = {
        "schema_version": SCHEMA_VERSION,
        "matrix": matrix_shape(report),
        "environment": dump(report.environment),
        "findings": [finding_shape(finding) for finding in report.findings],
        "suppressed": [
            {"by": each.by, "why": each.why, "finding": finding_shape(each.finding)} for each in report.suppressed
        ],
        "remarks": [
            {"text": each.text, "location": each.location._asdict() if each.location else None}
            for each in report.remarks
        ],
        "exit_reason": exit_reason,
    }
    return json.dumps(finite(shape), indent=2, ensure_ascii=False) + "\n"


def matrix_shape(judged: Report | Diagnosis | ClusterReport) -> dict[str, Any]:
    """Which matrix has judged; ``stale`` is true where nobody has reviewed it for more than 90 days."""
    return {
        "revision": judged.matrix_revision,
        "entries": judged.matrix_entries,
        "date": judged.matrix_date,
        "stale": judged.matrix_stale,
    }


def finding_shape(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "fingerprint": fingerprint(finding),
        "title": finding.title,
        "status": finding.status,
        "impact": finding.impact,
        "confidence": finding.confidence,
        "packages": finding.packages,
        "summary": finding.summary,
        "missing": finding.missing,
        "remedies": [_remedy(remedy) for remedy in finding.remedies],
        "evidence": finding.evidence,
        "probe": probe_shape(finding.probe) if finding.probe else None,
        "location": finding.location._asdict() if finding.location else None,
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "kind": remedy.kind,
        "pins": remedy.pins,
        "config": remedy.config,
        "environ": remedy.environ,
        "code": remedy.code,
        "steps": step_texts(remedy),
        "why": remedy.why,
    }


def probe_shape(result: ProbeResult) -> dict[str, Any]:
    return {
        "name": result.probe,
        "outcome": result.outcome,
        "why": result.why,
        "seconds": round(result.seconds, 3),
        "measured": result.measured,
    }


def finite(value: Any) -> Any:
    """JSON has no NaN or infinity: such a number is written as a string."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value
