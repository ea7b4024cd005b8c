"""What explains an alarm: the entries that fit both the environment with what was observed, and the symptoms."""

from __future__ import annotations

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.integrations._watch import Alarm
from compatcheck.pipelines.check import check
from compatcheck.report.steps import step_texts
from compatcheck.results.findings import STATUSES, Finding

_MOST_SHOWN = 3


def explain(environment: Environment, known: matrix.Matrix, alarm: Alarm) -> list[Finding]:
    """The findings whose entry names a symptom of the alarm: the surest first, then by how many it names.

    Raises `NothingInspectedError` where nothing is known of the environment.
    """
    observed = environment.overlay(Environment({"training": {"observed": dict(alarm.observed)}}))
    shared = {
        entry["id"]: len(set(entry.get("symptoms") or ()) & set(alarm.symptoms)) for entry in matrix.all_entries(known)
    }
    fitting = [finding for finding in check(observed, known).findings if shared.get(finding.id)]
    return sorted(fitting, key=lambda finding: (STATUSES.index(finding.status), -shared[finding.id], finding.id))


def render_alarm(alarm: Alarm, findings: list[Finding] | None) -> list[str]:
    """The alarm in words: what was seen, when, and what explains it where that could be looked up."""
    said = [f"step {alarm.step}: {alarm.signature}: {alarm.seen}"]
    for finding in (findings or ())[:_MOST_SHOWN]:
        missing = f", missing {', '.join(finding.missing)}" if finding.missing else ""
        said.append(f"  {finding.status} {finding.id} {finding.title}{missing}")
        if finding.remedies:
            first = finding.remedies[0]
            said.append(f"    fix {'; '.join(step_texts(first)) or first.why}")
    if findings:
        said.append(f"  next: compatcheck explain {findings[0].id}")
    elif findings is not None:
        said.append("  no entry of the matrix explains it from what is known of this environment")
    return said
