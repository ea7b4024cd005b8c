"""The shapes of values in JSON reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compatcheck.environment import Unknown
from compatcheck.inference.inferred import Inference, Inferred
from compatcheck.report.steps import step_texts
from compatcheck.results.areas import Area
from compatcheck.results.findings import Finding, HeldFact, ProbeResult, Remedy, Report, fingerprint

if TYPE_CHECKING:
    from compatcheck.results.cluster import ClusterReport
    from compatcheck.results.diagnoses import Diagnosis


def matrix_shape(judged: Report | Diagnosis | ClusterReport) -> dict[str, Any]:
    """Which matrix has judged; ``stale`` is true where nobody has reviewed it for more than 90 days."""
    return {
        "revision": judged.matrix_revision,
        "entries": judged.matrix_entries,
        "date": judged.matrix_date,
        "stale": judged.matrix_stale,
    }


def inferred_shape(inferred: Inferred) -> dict[str, object]:
    """Each fact that follows from the environment; one of ``unknown`` value sets aside what is stated there."""
    return {path: _inference(each) for path, each in inferred.facts.items()}


def _inference(inference: Inference) -> dict[str, object]:
    known = {"unknown": True} if isinstance(inference.value, Unknown) else {"value": inference.value}
    return {**known, "why": inference.why, "from": inference.sources}


def area_shape(area: Area) -> dict[str, object]:
    return {
        "name": area.name,
        "judged": area.judged,
        "sources": [source._asdict() for source in area.sources],
        "why": area.why,
    }


def finding_shape(finding: Finding) -> dict[str, object]:
    return {
        "id": finding.id,
        "fingerprint": fingerprint(finding),
        "title": finding.title,
        "status": finding.status,
        "impact": finding.impact,
        "confidence": finding.confidence,
        "packages": finding.packages,
        "summary": finding.summary,
        "because": [held_fact_shape(fact) for fact in finding.because],
        "missing": finding.missing,
        "remedies": [_remedy(remedy) for remedy in finding.remedies],
        "evidence": finding.evidence,
        "probe": probe_shape(finding.probe) if finding.probe else None,
        "location": finding.location._asdict() if finding.location else None,
    }


def held_fact_shape(held: HeldFact) -> dict[str, object]:
    at = held.location
    return {
        "fact": held.fact,
        "value": held.value,
        "file": at.file if at else None,
        "line": at.line if at else None,
        "why": held.why,
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "kind": remedy.kind,
        "pins": remedy.pins,
        "config": remedy.config,
        "environ": remedy.environ,
        "code": remedy.code,
        "action": remedy.action,
        "steps": step_texts(remedy),
        "why": remedy.why,
    }


def probe_shape(result: ProbeResult) -> dict[str, Any]:
    return {
        "name": result.probe,
        "outcome": result.outcome,
        "why": result.why,
        "by_design": [each._asdict() for each in result.by_design],
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
