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
from compatcheck.results.findings import Remedy, Report
from compatcheck.results.logs import Diagnosis, Explanation, Log, Moment, Run
from compatcheck.terminal.cells import cells, padded
from compatcheck.terminal.lines import Line

_INDENT = 10
_NAMES = {"memory_mib": "memory (MiB)"}
FITS = {"affected": "affected", "possible": "possible", "open": marked("would fit")}
_LONGEST_LINE = 300
_MOST_REMEDIES = {"affected": 4, "possible": 3, "open": 1}


def document(diagnosis: Diagnosis, *, verbose: bool = False) -> Document:
    body = (*_head(diagnosis), *_run_blocks(diagnosis), *_explained(diagnosis, verbose), *_left(diagnosis, verbose))
    return Document(
        _verdict(diagnosis),
        body,
        partial(_shape, diagnosis),
        repeats_title=True,
        report=_findings(diagnosis),
        page=partial(_page, diagnosis),
    )


def failing(diagnosis: Diagnosis) -> Document:
    """A row for what the log shows, as editors read it, and one for each entry that a fact speaks for."""
    if diagnosis.healthy and not diagnosis.explanations:
        return rows(())
    run = diagnosis.run
    place = run.crash.location if run.crash else run.onset.location if run.onset else Location(diagnosis.log.path)
    shown = [each for each in diagnosis.explanations if each.fit != "open" or each.line]
    fitting = (Line(f"{each.finding.id} {each.finding.title}", "", f"{_(FITS[each.fit])} ") for each in shown)
    return rows((Line(_(run.signature.words), "", f"{place}: "), *fitting))


def _findings(diagnosis: Diagnosis) -> Report:
    """The entries that explain the log, at the lines that show it."""
    findings = (
        each.finding._replace(location=each.line.location if each.line else each.finding.location)
        for each in diagnosis.explanations
    )
    judge = (diagnosis.matrix_revision, diagnosis.matrix_entries, diagnosis.matrix_date, diagnosis.matrix_stale)
    return Report(diagnosis.environment, tuple(findings), *judge)


def _page(diagnosis: Diagnosis) -> Iterator[str | None]:
    from compatcheck.report.pages import _diagnosis

    return _diagnosis.body(diagnosis)


def _verdict(diagnosis: Diagnosis) -> Line:
    """What the log shows, at both ends of what a terminal shows: the upper one may be out of sight."""
    return Line(_(diagnosis.run.signature.words), _style(diagnosis))


def _style(diagnosis: Diagnosis) -> str:
    if not diagnosis.healthy:
        return "bold red"
    return "bold green" if diagnosis.run.signature.judged else "bold"


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


def _run_blocks(diagnosis: Diagnosis) -> Iterator[Block]:
    run, path = diagnosis.run, diagnosis.log.path
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
        yield _labelled(_("began"), moment_in_words(run.onset, path))
    if run.healthy:
        yield _labelled(_("before"), _("last healthy: {moment}").format(moment=moment_in_words(run.healthy, path)))
    elif run.onset and run.readings and not run.signature.benign:
        yield _labelled(_("before"), _("present from the first reading"))
    if run.signature.benign and run.last:
        text = _("{moment}, the last of {count} readings")
        yield _labelled(_("last"), text.format(moment=moment_in_words(run.last, path), count=run.readings))
    for note in run.notes:
        yield _labelled(_("note"), _(note.words))
    yield from _other_runs(diagnosis.log, run)
    if any(curve.points for curve in run.curves):
        yield Curves(run.curves, run.signature.words, _INDENT)


def _other_runs(log: Log, judged: Run) -> Iterator[Line]:
    for number, run in enumerate(log.runs[-6:], max(len(log.runs) - 5, 1)):
        if run is not judged:
            lines = _("lines {first}-{last}").format(first=run.first_line, last=run.last_line)
            yield _labelled(_("run"), f"{number} ({lines}): {_(run.signature.words)}")


def _explained(diagnosis: Diagnosis, verbose: bool) -> Iterator[Line]:
    if diagnosis.healthy and not diagnosis.explanations:
        return
    if not diagnosis.explanations:
        unsure = _("no entry of the matrix explains this, as far as it is known")
        yield Line()
        yield Line(_("no entry of the matrix explains this") if diagnosis.environment_given else unsure)
    for number, explanation in enumerate(diagnosis.explanations, 1):
        yield Line()
        yield from _explanation(number, explanation, verbose)
    if diagnosis.more:
        yield Line()
        yield Line(_("{count} weaker matches not shown").format(count=diagnosis.more))


def _explanation(number: int, explanation: Explanation, verbose: bool) -> Iterator[Line]:
    """An entry as far as it is worth reading: of one that no fact speaks for, what would decide and one way out."""
    finding, spoken_for = explanation.finding, explanation.fit != "open" or explanation.line is not None
    head = f"{number:2}. {padded(_(FITS[explanation.fit]), 10)}{finding.id}"
    yield Line(finding.title, "bold", head, "bold", cells(head) + 2)
    for at, why in enumerate(explanation.why if spoken_for else ()):
        yield _labelled("" if at else _("fits"), why)
    for at, way in enumerate(explanation.tells_apart if spoken_for else explanation.tells_apart[:1]):
        yield _labelled(_("or") if at else _("decide"), way)
    for at, address in enumerate(finding.evidence if verbose else ()):
        yield _labelled("" if at else _("see"), address)
    for at, remedy in enumerate(finding.remedies[: _MOST_REMEDIES[explanation.fit]]):
        yield from _remedy(_("or") if at else _("fix"), remedy)
    for at, text in enumerate(explanation.misleading if spoken_for else ()):
        yield _labelled("" if at else _("misleads"), text)


def _remedy(label: str, remedy: Remedy) -> Iterator[Line]:
    for at, step in enumerate(remedy.steps):
        yield _labelled(_("and") if at else label, step_text(step), "green")
    if explains_more(remedy):
        yield _labelled("" if remedy.steps else label, remedy.why)


def _left(diagnosis: Diagnosis, verbose: bool) -> Iterator[Line]:
    against = [each for each in diagnosis.dropped if each.line]
    for dropped in diagnosis.dropped if verbose else against:
        known = ", ".join(dropped.against)
        yield Line()
        yield Line(_("ruled out {entry}").format(entry=f"{dropped.id}  {dropped.title}"))
        yield _labelled("", _("ruled out by {facts}").format(facts=known or _("a known fact")))
        if dropped.line:
            place = f"{dropped.line.location}: {dropped.line.text}"
            text = _("its error line is in {place}; is this the environment that wrote the log?")
            yield _labelled(_("yet"), text.format(place=place))
    yield Line()
    if diagnosis.explanations:
        command = f"compatcheck explain {diagnosis.explanations[0].finding.id}"
        yield Line(_("next: {command}").format(command=command), "dim")
    elif diagnosis.healthy:
        yield Line(_("healthy") if diagnosis.run.signature.judged else _("too few steps to judge"))
    if not diagnosis.environment_given and not diagnosis.healthy:
        text = _("no environment was named: --python, --snapshot or --config with that of the run decides between them")
        yield Line(text, "dim")


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
    return {
        "matrix": matrix_shape(diagnosis),
        "environment": diagnosis.environment.dump(),
        "inferred": inferred_shape(diagnosis.inferred),
        "log": diagnosis.log.path,
        "healthy": diagnosis.healthy and diagnosis.run.signature.judged and not diagnosis.explanations,
        "run": _run_shape(diagnosis.run),
        "logs": [
            {"path": log.path, "runs": [_run_shape(run) for run in log.runs], "notes": log.notes}
            for log in diagnosis.logs
        ],
        "explanations": [_explanation_shape(explanation) for explanation in diagnosis.explanations],
        "more": diagnosis.more,
        "ruled_out": [{"id": each.id, "title": each.title, "against": each.against} for each in diagnosis.dropped],
    }


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
        "fit": explanation.fit,
        "why": explanation.why,
        "tells_apart": explanation.tells_apart,
        "misleading": explanation.misleading,
        "line": explanation.line and {"text": explanation.line.text, **explanation.line.location._asdict()},
        "finding": finding_shape(explanation.finding),
    }
