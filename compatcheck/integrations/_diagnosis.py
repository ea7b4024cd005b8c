"""What explains an alarm: the entries by their probability, as `compatcheck diagnose` ranks them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from compatcheck import matrix
from compatcheck.environment import Environment, Location, Unknown
from compatcheck.files.storage import write
from compatcheck.integrations._watch import Alarm
from compatcheck.pipelines.diagnose import Reading
from compatcheck.pipelines.diagnose import explain as explain_case
from compatcheck.report import render
from compatcheck.report.steps import step_texts
from compatcheck.report.subjects import diagnosis as reports
from compatcheck.results.cases import Case, Sighting
from compatcheck.results.diagnoses import Diagnosis

_SOURCE = "the guard"
_MOST_SHOWN = 3


def explain(environment: Environment, known: matrix.Matrix, alarm: Alarm) -> Diagnosis:
    """What the environment and the symptoms of an alarm show, and what explains them.

    Raises `NothingInspectedError` where nothing is known of the environment.
    """
    facts: dict[str, object] = {"observed": dict(alarm.observed)}
    if alarm.signature == "labels-all-masked" and isinstance(environment.get("training.objective"), Unknown):
        facts["objective"] = "sft"  # whoever masks labels trains on labels
    observed = environment.overlay(Environment({"training": facts}))
    place = Location(_SOURCE)
    sightings = tuple(Sighting(name, alarm.seen, place, "readings") for name in alarm.symptoms)
    return explain_case(Reading(Case(observed, sightings=sightings), (), environment), known, (_SOURCE,))


def render_alarm(alarm: Alarm, diagnosis: Diagnosis | None) -> list[str]:
    """The alarm in words: what was seen, when, and what explains it where that could be looked up."""
    said = [f"step {alarm.step}: {alarm.signature}: {alarm.seen}"]
    if diagnosis is None:
        return said
    shown = [each for each in diagnosis.explanations if each.fit == "affected" or each.band != "long shot"]
    for each in shown[:_MOST_SHOWN]:
        finding = each.finding
        missing = f", missing {', '.join(finding.missing)}" if finding.missing else ""
        said.append(f"  {each.band} {finding.id} {finding.title}{missing}")
        if finding.remedies:
            first = finding.remedies[0]
            said.append(f"    fix {'; '.join(step_texts(first)) or first.why}")
    if shown:
        said.append(f"  next: compatcheck explain {shown[0].finding.id}")
    else:
        said.append("  no matrix entry explains this alarm from the facts known about the environment")
    return said


def write_report(path: str, alarms: Sequence[tuple[Alarm, Diagnosis | None]]) -> None:
    """Write what was seen and what explains it, as Markdown; raises `OSError`."""
    parts = []
    for alarm, diagnosis in alarms:
        parts.append(f"# step {alarm.step}: {alarm.signature}\n\n{alarm.seen}\n")
        if diagnosis is not None:
            parts.append(render(reports.document(diagnosis), "markdown").strip() + "\n")
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    write(path, "\n".join(parts), is_own=not os.path.islink(path))
