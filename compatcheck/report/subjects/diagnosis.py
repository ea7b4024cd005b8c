"""What a log shows and what explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from compatcheck.environment import Location
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.report.document import Block, Curves, Document, rows
from compatcheck.report.shapes import finding_shape, inferred_shape, matrix_shape
from compatcheck.report.steps import explains_more, step_text
from compatcheck.report.subjects._environment import head, stale
from compatcheck.results.diagnoses import Diagnosis, Evidence, Explanation
from compatcheck.results.findings import Remedy, Report
from compatcheck.results.logs import Log, Moment, Run
from compatcheck.terminal.cells import cells, padded
from compatcheck.terminal.lines import Line

_INDENT = 10
_NAMES = {"memory_mib": "memory (MiB)"}
_LONGEST_LINE = 300
_MOST_REMEDIES = {"likely": 4, "plausible": 3, "long shot": 1}
_MOST_SHOWN = 3
_MOST_EVIDENCE = 5
BANDS = (marked("likely"), marked("plausible"), marked("long shot"))


def document(diagnosis: Diagnosis, *, verbose: bool = False, everything: bool = False) -> Document:
    """The answer: what does not fit, what was seen, the explanations with what speaks for each, and what to do next.

    ``everything`` shows every explanation rather than the first three, ``verbose`` all evidence.
    """
    body = (
        *_head(diagnosis),
        *_mismatch(diagnosis),
        *_run_blocks(diagnosis),
        *_symptoms(diagnosis),
        *_explained(diagnosis, verbose, everything),
        *_next(diagnosis),
    )
    return Document(
        _verdict(diagnosis),
        body,
        partial(_shape, diagnosis),
        repeats_title=True,
        report=_findings(diagnosis),
        page=partial(_page, diagnosis),
    )


def failing(diagnosis: Diagnosis) -> Document:
    """A row for what is seen, as editors read it, and one for each explanation that is at least plausible."""
    if not diagnosis.shows_fault:
        return rows(())
    run = diagnosis.run
    seen = []
    if run and not run.signature.benign:
        place = run.crash.location if run.crash else run.onset.location if run.onset else Location(_path(diagnosis))
        seen.append(Line(_(run.signature.words), "", f"{place}: "))
    shown = [each for each in diagnosis.explanations if each.band != "long shot"]
    fitting = (Line(f"{each.finding.id} {each.finding.title}", "", f"{_(each.band)} ") for each in shown)
    return rows((*seen, *fitting))


def _path(diagnosis: Diagnosis) -> str:
    return diagnosis.log.path if diagnosis.log else ""


def _findings(diagnosis: Diagnosis) -> Report:
    """The entries that explain the case, at the lines that show it."""
    findings = (
        each.finding._replace(location=next((e.location for e in each.speaks_for if e.location), each.finding.location))
        for each in diagnosis.explanations
        if each.band != "long shot"
    )
    judge = (diagnosis.matrix_revision, diagnosis.matrix_entries, diagnosis.matrix_date, diagnosis.matrix_stale)
    return Report(diagnosis.environment, tuple(findings), *judge)


def _page(diagnosis: Diagnosis) -> Iterator[str | None]:
    from compatcheck.report.pages import _diagnosis

    return _diagnosis.body(diagnosis)


def _verdict(diagnosis: Diagnosis) -> Line:
    """What the case comes to, at both ends of what a terminal shows: the upper one may be out of sight."""
    return Line(verdict_words(diagnosis), _style(diagnosis))


def _style(diagnosis: Diagnosis) -> str:
    if not diagnosis.healthy:
        return "bold red"
    return "bold green" if diagnosis.run and diagnosis.run.signature.judged else "bold"


def verdict_words(diagnosis: Diagnosis) -> str:
    """What the log shows, or else the first explanation."""
    run = diagnosis.run
    if run is not None and (not run.signature.benign or diagnosis.healthy):
        return _(run.signature.words)
    if diagnosis.explanations and diagnosis.explanations[0].band != "long shot":
        first = diagnosis.explanations[0]
        return _("{band}: {title}").format(band=_(first.band), title=first.finding.title)
    return _("no explanation is plausible from what was given")


def _head(diagnosis: Diagnosis) -> Iterator[Line]:
    yield head(diagnosis)
    yield from stale(diagnosis)
    for log in diagnosis.logs:
        judged = log is diagnosis.log
        runs = _(", {count} runs").format(count=len(log.runs)) if len(log.runs) > 1 else ""
        shown = "" if judged or log.last is None else f": {_(log.last.signature.words)}"
        yield _labelled(_("log") if judged else _("also"), f"{log.path}{runs}{shown}", "dim")
        for note in log.notes:
            yield _labelled("", note)


def _mismatch(diagnosis: Diagnosis) -> Iterator[Line]:
    for at, each in enumerate(diagnosis.mismatch):
        yield _labelled("" if at else _("mismatch"), _placed(each), "bold red")


def _run_blocks(diagnosis: Diagnosis) -> Iterator[Block]:
    run, log = diagnosis.run, diagnosis.log
    if run is None or log is None:
        return
    yield Line()
    yield _labelled(_("shows"), _(run.signature.words), _style(diagnosis))
    for detail in run.signature.details:
        yield _labelled("", _(detail))
    if run.crash:
        yield _labelled(_("error"), f"{run.crash.location}: {run.crash.text[:_LONGEST_LINE]}")
        for frame in run.crash.frames[-2:]:
            yield _labelled("", _("at {frame}").format(frame=frame))
        if len(run.crash.ranks) > 1:
            yield _labelled("", _("on ranks {ranks}").format(ranks=", ".join(run.crash.ranks)))
    if run.onset and not run.signature.benign:
        yield _labelled(_("began"), moment_in_words(run.onset, log.path))
    if run.healthy:
        yield _labelled(_("before"), _("last healthy: {moment}").format(moment=moment_in_words(run.healthy, log.path)))
    elif run.onset and run.readings and not run.signature.benign:
        yield _labelled(_("before"), _("present from the first reading"))
    if run.signature.benign and run.last:
        text = _("{moment}, the last of {count} readings")
        yield _labelled(_("last"), text.format(moment=moment_in_words(run.last, log.path), count=run.readings))
    for note in run.notes:
        yield _labelled(_("note"), _(note.words))
    yield from _other_runs(log, run)
    if any(curve.points for curve in run.curves):
        yield Curves(run.curves, run.signature.words, _INDENT)


def _other_runs(log: Log, judged: Run) -> Iterator[Line]:
    for number, run in enumerate(log.runs[-6:], max(len(log.runs) - 5, 1)):
        if run is not judged:
            lines = _("lines {first}-{last}").format(first=run.first_line, last=run.last_line)
            yield _labelled(_("run"), f"{number} ({lines}): {_(run.signature.words)}")


def _symptoms(diagnosis: Diagnosis) -> Iterator[Line]:
    """What people say that they see."""
    for at, sighting in enumerate(each for each in diagnosis.case.sightings if each.origin == "words"):
        yield _labelled("" if at else _("symptom"), f"{sighting.symptom} ({sighting.location}): {sighting.text}")


def _explained(diagnosis: Diagnosis, verbose: bool, everything: bool) -> Iterator[Line]:
    if diagnosis.healthy and not diagnosis.shows_fault:
        return
    shown = diagnosis.explanations if everything else diagnosis.explanations[:_MOST_SHOWN]
    for number, explanation in enumerate(shown, 1):
        yield Line()
        yield from _explanation(number, explanation, verbose)
    if more := len(diagnosis.explanations) - len(shown):
        yield Line()
        yield Line(_("{count} less probable explanations: --all").format(count=more), "dim")


def _explanation(number: int, explanation: Explanation, verbose: bool) -> Iterator[Line]:
    finding = explanation.finding
    head = f"{number:2}. {padded(_(explanation.band), 11)}"
    yield Line(f"{finding.id}  {finding.title}", "bold", head, "bold", cells(head))
    for at, each in enumerate(explanation.speaks_for[: None if verbose else _MOST_EVIDENCE]):
        yield _labelled("" if at else _("for"), _placed(each))
    for at, each in enumerate(explanation.against[: None if verbose else _MOST_EVIDENCE]):
        yield _labelled("" if at else _("against"), _placed(each))
    for at, ask in enumerate(explanation.asks[: None if verbose else 1]):
        yield _labelled("" if at else _("ask"), ask.text)
    for at, remedy in enumerate(finding.remedies[: _MOST_REMEDIES[explanation.band]]):
        yield from _remedy(_("or") if at else _("fix"), remedy)
    for at, text in enumerate(explanation.misleading if explanation.band != "long shot" else ()):
        yield _labelled("" if at else _("misleads"), text)
    for at, address in enumerate(finding.evidence if verbose else ()):
        yield _labelled("" if at else _("see"), address)


def _placed(evidence: Evidence) -> str:
    return f"{evidence.text} ({evidence.location})" if evidence.location else evidence.text


def _remedy(label: str, remedy: Remedy) -> Iterator[Line]:
    for at, step in enumerate(remedy.steps):
        yield _labelled(_("and") if at else label, step_text(step), "green")
    if explains_more(remedy):
        yield _labelled("" if remedy.steps else label, remedy.why)


def _next(diagnosis: Diagnosis) -> Iterator[Line]:
    yield Line()
    for text in diagnosis.general:
        yield _labelled(_("try"), text)
    if diagnosis.shows_fault and diagnosis.explanations:
        command = f"compatcheck explain {diagnosis.explanations[0].finding.id}"
        yield Line(_("next: {command}").format(command=command), "dim")
    elif diagnosis.healthy and diagnosis.run:
        yield Line(_("healthy") if diagnosis.run.signature.judged else _("too few steps to judge"))


def moment_in_words(moment: Moment, path: str) -> str:
    parts = []
    if moment.step is not None:
        text = _("about step {number}") if moment.about else _("step {number}")
        parts.append(text.format(number=f"{moment.step:g}"))
    elif moment.epoch is not None:
        parts.append(_("epoch {number}").format(number=f"{moment.epoch:g}"))
    same = moment.location.file == path
    parts.append(_("line {number}").format(number=moment.location.line) if same else str(moment.location))
    values = [f"{_NAMES.get(name, name)} {value:.6g}" for name, value in moment.values.items()]
    return f"{', '.join(parts)}: {', '.join(values)}"


def _labelled(label: str, text: str, style: str = "") -> Line:
    return Line(text, style, label, "", _INDENT)


def _shape(diagnosis: Diagnosis) -> Mapping[str, Any]:
    case = diagnosis.case
    return {
        "matrix": matrix_shape(diagnosis),
        "environment": diagnosis.environment.dump(),
        "inferred": inferred_shape(diagnosis.inferred),
        "facts": [
            {"path": each.path, "value": each.value, "how": each.how, "doubt": each.doubt, **each.location._asdict()}
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
    return {"text": evidence.text, "location": evidence.location and evidence.location._asdict()}


def _run_shape(run: Run) -> dict[str, Any]:
    signature = run.signature
    return {
        "signature": signature.name,
        "words": signature.words,
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
