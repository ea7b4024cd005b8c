"""What a log shows and what explains it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from compatcheck import symptoms
from compatcheck.environment import Location
from compatcheck.environment.paths import distribution_of
from compatcheck.language import comma_list, marked
from compatcheck.language import gettext as _
from compatcheck.report.document import Block, Curves, Document, rows
from compatcheck.report.steps import explains_more, step_text
from compatcheck.report.subjects._diagnosis_shape import shape
from compatcheck.report.subjects._environment import head, stale
from compatcheck.results.cases import Said, Sighting
from compatcheck.results.diagnoses import WORTH_ASKING, Ask, Diagnosis, Evidence, Explanation
from compatcheck.results.findings import Remedy, Report
from compatcheck.results.logs import Log, Moment, Run
from compatcheck.terminal.cells import cells, padded
from compatcheck.terminal.lines import Line

_INDENT = 10
_NAMES = {"memory_mib": "memory (MiB)"}
_LONGEST_LINE = 300
_LONGEST_QUOTE = 160
_MOST_REMEDIES = {"likely": 4, "plausible": 3, "long shot": 1}
_MOST_SHOWN = 3
_WORTH_SHOWING = 0.03
_MOST_EVIDENCE = 4
_MOST_FACTS = 8
HOWS = (
    marked("stated"),
    marked("failed"),
    marked("worked"),
    marked("tried"),
    marked("asked"),
    marked("advised"),
    marked("elsewhere"),
)
BANDS = (marked("likely"), marked("plausible"), marked("long shot"))


def document(diagnosis: Diagnosis, *, verbose: bool = False, everything: bool = False) -> Document:
    """The answer: what does not fit, what was seen, the explanations with what speaks for each, and what to do next.

    ``everything`` shows every explanation rather than the first three, ``verbose`` all evidence and each mention of a
    fact.
    """
    body = (
        *_mismatch(diagnosis),
        *_head(diagnosis),
        *_run_blocks(diagnosis),
        *_symptoms(diagnosis),
        *_facts(diagnosis, verbose),
        *_explained(diagnosis, verbose, everything),
        *_next(diagnosis),
    )
    return Document(
        _verdict(diagnosis),
        body,
        partial(shape, diagnosis),
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
    """What does not fit, what the log shows, or else the first explanation."""
    run = diagnosis.run
    if diagnosis.mismatch:
        return diagnosis.mismatch[0].text
    if run is not None and (not run.signature.benign or diagnosis.healthy):
        return _(run.signature.words)
    if diagnosis.explanations and diagnosis.explanations[0].band != "long shot":
        first = diagnosis.explanations[0]
        return _("{band}: {title}").format(band=_(first.band), title=first.finding.title)
    return _("no plausible explanation for this input")


def _head(diagnosis: Diagnosis) -> Iterator[Line]:
    yield head(diagnosis)
    yield from stale(diagnosis)
    for log in diagnosis.logs:
        judged = log is diagnosis.log
        runs = _(", {count} runs").format(count=len(log.runs)) if len(log.runs) > 1 else ""
        shown = "" if judged or log.last is None else f": {_(log.last.signature.words)}"
        yield _labelled(_("input") if judged else _("also"), f"{log.path}{runs}{shown}", "dim")
        for note in log.notes:
            yield _labelled("", note)


def _mismatch(diagnosis: Diagnosis) -> Iterator[Line]:
    for at, each in enumerate(diagnosis.mismatch):
        yield _labelled("" if at else _("mismatch"), placed(each, diagnosis), "bold red")
    if diagnosis.mismatch:
        yield Line()


def _run_blocks(diagnosis: Diagnosis) -> Iterator[Block]:
    run, log = diagnosis.run, diagnosis.log
    if run is None or log is None:
        return
    yield Line()
    yield _labelled(_("shows"), _(run.signature.words), _style(diagnosis))
    for detail in run.signature.details:
        yield _labelled("", _(detail))
    if run.crash:
        yield _labelled(_("error"), f"{place_of(run.crash.location, diagnosis)}: {run.crash.text[:_LONGEST_LINE]}")
        for frame in run.crash.frames[-2:]:
            yield _labelled("", _("at {frame}").format(frame=frame))
        if len(run.crash.ranks) > 1:
            yield _labelled("", _("on ranks {ranks}").format(ranks=comma_list(run.crash.ranks)))
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
    """What people say that they see, the symptoms of one line together."""
    together: dict[Location, list[Sighting]] = {}
    for sighting in diagnosis.case.sightings:
        if sighting.origin == "words":
            together.setdefault(sighting.location, []).append(sighting)
    for at, (location, sightings) in enumerate(together.items()):
        titles = _("; ").join(dict.fromkeys(symptoms.title(each.symptom) for each in sightings))
        quotes = " … ".join(dict.fromkeys(each.text for each in sightings))
        shown = f"{titles} ({place_of(location, diagnosis)}: {quotes[:_LONGEST_QUOTE]})"
        yield _labelled("" if at else _("symptom"), shown)


def _facts(diagnosis: Diagnosis, verbose: bool) -> Iterator[Line]:
    """Every mention with how it is said; without ``verbose`` what was read, where nothing plausible shows it."""
    if verbose:
        mentioned = {each.path for each in diagnosis.case.said}
        mentions = [_mention(each, diagnosis) for each in diagnosis.case.said]
        others = [f"{path} {value}" for path, value in _plain_facts(diagnosis) if path not in mentioned]
        for at, text in enumerate((*mentions, *others)):
            yield _labelled("" if at else _("facts"), text)
        return
    plausible = any(each.band != "long shot" for each in diagnosis.explanations)
    if diagnosis.healthy or plausible:
        return
    stated = [
        f"{distribution_of(path) or path.removeprefix('training.')} {value}" for path, value in _plain_facts(diagnosis)
    ]
    more = [_("{count} more: -v").format(count=len(stated) - _MOST_FACTS)] if len(stated) > _MOST_FACTS else []
    if stated:
        yield _labelled(_("read"), comma_list((*stated[:_MOST_FACTS], *more)))


def _plain_facts(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """The facts that are one value each, less those that a run shows."""
    for path, value in diagnosis.environment.flat().items():
        hidden = path.startswith(("training.observed.", "report.", "target.")) or path == "distributions_complete"
        if isinstance(value, (str, int, float)) and value != "" and not hidden:
            yield path, str(value).lower() if isinstance(value, bool) else str(value)


def _mention(said: Said, diagnosis: Diagnosis) -> str:
    value = _("absent") if said.value is None else said.value
    doubt = f", {_(said.doubt)}" if said.doubt else ""
    return f"{place_of(said.location, diagnosis)}: {_(said.how)}: {said.path} {value}{doubt}"


def _explained(diagnosis: Diagnosis, verbose: bool, everything: bool) -> Iterator[Line]:
    if diagnosis.healthy and not diagnosis.shows_fault:
        return
    shown = diagnosis.explanations if everything else first_explanations(diagnosis)
    if not shown or shown[0].band == "long shot":
        if diagnosis.general:
            yield Line()
        for at, text in enumerate(diagnosis.general):
            yield _labelled("" if at else _("try"), text)
        yield Line()
        nearest = _("no plausible explanation for this input; the nearest are")
        yield Line(nearest if shown else _("no plausible explanation for this input"), "bold")
    for number, explanation in enumerate(shown, 1):
        yield Line()
        yield from _explanation(number, explanation, diagnosis, verbose)
    if more := len(diagnosis.explanations) - len(shown):
        yield Line()
        yield Line(_("{count} less probable: --all").format(count=more), "dim")


def first_explanations(diagnosis: Diagnosis) -> tuple[Explanation, ...]:
    """The three most probable for which anything speaks; beside a plausible one only those not far behind.

    Where a fault is seen, a long shot needs more than one thing that most cases have.
    """
    seen = bool(diagnosis.case.sightings or diagnosis.case.hits)
    first = [each for each in diagnosis.explanations if each.band != "long shot" or _is_near(each, seen)][:_MOST_SHOWN]
    plausible = any(each.band != "long shot" for each in first)
    return tuple(each for each in first if each.probability >= _WORTH_SHOWING or not plausible)


def _is_near(explanation: Explanation, seen: bool) -> bool:
    found = explanation.speaks_for
    return any(not each.common for each in found) or len(found) > seen


def question_text(ask: Ask) -> str:
    """A question with the option that answers it, or the probe to run."""
    return f"{ask.text} {ask.command}" if ask.fact else ask.text


def _explanation(number: int, explanation: Explanation, diagnosis: Diagnosis, verbose: bool) -> Iterator[Line]:
    finding = explanation.finding
    head = f"{number:2}. {padded(_(explanation.band), 11)}"
    yield Line(f"{finding.id}  {finding.title}", "bold", head, "bold", cells(head))
    yield from _evidence(_("for"), explanation.speaks_for, diagnosis, verbose)
    yield from _evidence(_("against"), explanation.against, diagnosis, verbose)
    worth = [ask for ask in explanation.asks if ask.divides >= WORTH_ASKING]
    for at, ask in enumerate(worth if verbose else worth[:1]):
        yield _labelled("" if at else _("ask"), question_text(ask))
    for at, remedy in enumerate(finding.remedies[: _MOST_REMEDIES[explanation.band]]):
        yield from _remedy(_("or") if at else _("fix"), remedy)
    for at, text in enumerate(explanation.misleading if explanation.band != "long shot" else ()):
        yield _labelled("" if at else _("misleads"), text)
    for at, address in enumerate(finding.evidence if verbose else ()):
        yield _labelled("" if at else _("see"), address)


def _evidence(label: str, evidence: Sequence[Evidence], diagnosis: Diagnosis, verbose: bool) -> Iterator[Line]:
    """Lines, symptoms and contrasts each on a row of its own, and the facts on one."""
    texts = [placed(each, diagnosis) for each in evidence if not each.fact]
    facts = [placed(each, diagnosis) for each in evidence if each.fact]
    if not verbose:
        texts = texts[:_MOST_EVIDENCE]
        if len(facts) > _MOST_FACTS:
            facts = [*facts[:_MOST_FACTS], _("{count} more: -v").format(count=len(facts) - _MOST_FACTS)]
    if facts:
        texts.append(comma_list(facts))
    for at, text in enumerate(texts):
        yield _labelled("" if at else label, text)


def placed(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """A piece of evidence with its place, short where there is one input."""
    return f"{evidence.text} ({place_of(evidence.location, diagnosis)})" if evidence.location else evidence.text


def place_of(location: Location, diagnosis: Diagnosis) -> str:
    """A place as ``line 12`` where one text or log was given, else with the path from the working directory."""
    files = {log.path for log in diagnosis.logs}
    if len(diagnosis.inputs) == 1 and files == {location.file} and location.line is not None:
        return _("line {number}").format(number=location.line)
    return str(location._replace(file=_short(location.file)))


def _short(path: str) -> str:
    if not os.path.isabs(path):
        return path
    try:
        relative = os.path.relpath(path)
    except ValueError:
        return path
    return path if relative.startswith("..") else relative


def _remedy(label: str, remedy: Remedy) -> Iterator[Line]:
    for at, step in enumerate(remedy.steps):
        yield _labelled(_("and") if at else label, step_text(step), "green")
    if explains_more(remedy):
        yield _labelled("" if remedy.steps else label, remedy.why)


def _next(diagnosis: Diagnosis) -> Iterator[Line]:
    yield Line()
    if diagnosis.shows_fault and diagnosis.explanations and diagnosis.explanations[0].band != "long shot":
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
    return f"{comma_list(parts)}: {comma_list(values)}"


def _labelled(label: str, text: str, style: str = "") -> Line:
    return Line(text, style, label, "", _INDENT)
