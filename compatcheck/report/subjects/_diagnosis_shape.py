"""The JSON of a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Location
from compatcheck.language import gettext as _
from compatcheck.report.shapes import finding_shape, inferred_shape, matrix_shape
from compatcheck.results.diagnoses import Diagnosis, Evidence, Explanation
from compatcheck.results.logs import Moment, Run


def shape(diagnosis: Diagnosis) -> Mapping[str, Any]:
    case = diagnosis.case
    return {
        "matrix": matrix_shape(diagnosis),
        "environment": diagnosis.environment.dump(),
        "inferred": inferred_shape(diagnosis.inferred),
        "facts": [
            {
                "path": each.path,
                "value": each.value,
                "how": each.how,
                "doubt": each.doubt,
                "location": each.location._asdict(),
            }
            for each in case.said
        ],
        "contrasts": [{**each._asdict(), "location": each.location._asdict()} for each in case.contrasts],
        "symptoms": [{**each._asdict(), "location": each.location._asdict()} for each in case.sightings],
        "log": diagnosis.log and diagnosis.log.path,
        "healthy": diagnosis.healthy and diagnosis.run is not None and diagnosis.run.signature.judged,
        "run": diagnosis.run and _run_shape(diagnosis.run),
        "logs": [
            {"path": log.path, "runs": [_run_shape(run) for run in log.runs], "notes": log.notes}
            for log in diagnosis.logs
        ],
        "mismatch": [_evidence_shape(each) for each in diagnosis.mismatch],
        "explanations": [_explanation_shape(explanation) for explanation in diagnosis.explanations],
        "next_steps": diagnosis.general,
    }


def _evidence_shape(evidence: Evidence) -> dict[str, object]:
    return {"text": evidence.text, "location": _location_shape(evidence.location)}


def _location_shape(location: Location | None) -> Mapping[str, object] | None:
    return location and location._asdict()


def _run_shape(run: Run) -> dict[str, Any]:
    signature = run.signature
    return {
        "signature": signature.name,
        "words": _(signature.words),
        "symptoms": sorted(signature.symptoms),
        "benign": signature.benign,
        "details": signature.details,
        "lines": [run.first_line, run.last_line],
        "readings": run.readings,
        "onset": _moment_shape(run.onset),
        "last_healthy": _moment_shape(run.healthy),
        "last": _moment_shape(run.last),
        "notes": [note.name for note in run.notes],
        "error": run.crash
        and {
            "kind": run.crash.kind,
            "text": run.crash.text,
            "location": run.crash.location._asdict(),
            "frames": run.crash.frames,
            "ranks": run.crash.ranks,
        },
        "curves": [curve._asdict() for curve in run.curves],
    }


def _moment_shape(moment: Moment | None) -> dict[str, object] | None:
    if moment is None:
        return None
    return {
        "step": moment.step,
        "about": moment.about,
        "epoch": moment.epoch,
        "values": dict(moment.values),
        "location": moment.location._asdict(),
    }


def _explanation_shape(explanation: Explanation) -> dict[str, object]:
    return {
        "probability": round(explanation.probability, 4),
        "band": explanation.band,
        "fit": explanation.fit,
        "for": [_evidence_shape(each) for each in explanation.speaks_for],
        "against": [_evidence_shape(each) for each in explanation.against],
        "asks": [each._asdict() for each in explanation.asks],
        "misleading": explanation.misleading,
        "finding": finding_shape(explanation.finding),
    }
