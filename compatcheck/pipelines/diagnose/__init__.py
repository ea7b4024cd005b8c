"""From whatever a person has to the entries that explain it: reports, logs, scripts and environments, as one case."""

from __future__ import annotations

from collections.abc import Sequence

from compatcheck import advice, matrix, symptoms
from compatcheck.errors import NothingInspectedError
from compatcheck.explanation import evidence, questions
from compatcheck.explanation.features import Context
from compatcheck.explanation.ranking import Ranked, band_of, rank
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix.matching.by_day import remedies_by
from compatcheck.pipelines.diagnose._case import Given, Reading, case_of_text, judged_log, read_case
from compatcheck.pipelines.diagnose._mismatch import mismatches
from compatcheck.results.cases import Case
from compatcheck.results.diagnoses import Answer, Diagnosis, Evidence, Explanation
from compatcheck.results.findings import Finding
from compatcheck.results.logs import Fit, Log, Run, Signature

__all__ = ["Given", "Reading", "case_of_text", "diagnose", "explain", "read_case"]

MOST_EXPLANATIONS = 20
"""Explanations that are spelt out; the rest are less probable than any reader looks at."""

LEAST = 0.002
"""Probability below which an explanation is not worth a line."""


def diagnose(given: Given, known: matrix.Matrix) -> Diagnosis:
    """What is given, what it shows, and what explains it.

    Raises `NothingInspectedError` where nothing at all could be read, `InputError` where something cannot be read.
    """
    return explain(read_case(given, known), known, given.paths)


def explain(
    reading: Reading, known: matrix.Matrix, inputs: tuple[str, ...], answers: Sequence[Answer] = ()
) -> Diagnosis:
    """What a case shows and what explains it, with what a person answered to questions."""
    case, logs = reading.case, reading.logs
    log = judged_log(logs)
    run = (log.last or _run_from_hits(log)) if log else None
    if not (case.environment.facts or case.sightings or case.hits or case.said or run):
        seen = "the input contains no version, setting, loss or error"
        subject = ", ".join(_("standard input") if path == "-" else path for path in inputs)
        raise NothingInspectedError("diagnosing", subject, seen, "paste the versions, the log or the error")
    context, weighed = rank(case, known)
    ranked = questions.answered(weighed, answers)
    explained = [each for each in ranked if each.probability >= LEAST or each.weighing.hits][:MOST_EXPLANATIONS]
    explanations = tuple(_explanation(each, explained, context, known, answers) for each in explained)
    judged_by = (known.revision, known.entries, known.date, matrix.is_stale(known))
    mismatch = mismatches(reading, ranked, context)
    found = Diagnosis(case, logs, log, run, explanations, mismatch, (), inputs, context.judged.inferred, *judged_by)
    return found._replace(general=_general(found))


def _run_from_hits(log: Log) -> Run | None:
    """A log without a run, in which an entry's pattern matches a line."""
    if not log.hits:
        return None
    line = log.hits[0].location.line or 1
    return Run(Signature("known-error-line", marked("a line that matches a matrix entry")), line, line, 0)


def _explanation(
    ranked: Ranked, explained: Sequence[Ranked], context: Context, known: matrix.Matrix, answers: Sequence[Answer]
) -> Explanation:
    weighing = ranked.weighing
    finding = matrix.finding_of(known, weighing.row, weighing.verdict, context.judged)
    (finding,) = advice.recommend(context.judged.view, [_of_its_day(finding, context, known)])
    return Explanation(
        finding,
        ranked.probability,
        band_of(ranked),
        _fit(ranked),
        (*_answers(ranked, answers, holds=True), *evidence.speaks_for(weighing, context)),
        (*_answers(ranked, answers, holds=False), *evidence.speaks_against(weighing, context)),
        tuple(questions.asks(finding, ranked, explained, answers)),
        matrix.misleading(known, weighing.row),
    )


def _of_its_day(finding: Finding, context: Context, known: matrix.Matrix) -> Finding:
    """The finding with the remedies that were out on the day of the report, where there are any."""
    existing = remedies_by(finding.remedies, context.day, matrix.release_days(known))
    return finding._replace(remedies=existing or finding.remedies)


def _answers(ranked: Ranked, answers: Sequence[Answer], *, holds: bool) -> tuple[Evidence, ...]:
    """What a person answered of the conditions of an entry."""
    conditions = ranked.weighing.conditions
    text = _("your answer: {question} yes") if holds else _("your answer: {question} no")
    return tuple(
        Evidence(text.format(question=questions.question_of(answer.fact, answer.condition)))
        for answer in answers
        if answer.holds is holds and conditions.get(answer.fact) == answer.condition
    )


def _fit(ranked: Ranked) -> Fit | None:
    verdict = ranked.weighing.verdict
    if verdict.holds is False:
        return None
    return "affected" if verdict.holds else "possible" if verdict.narrowed else "open"


def _general(found: Diagnosis) -> tuple[str, ...]:
    """What to do next where no explanation is plausible and something is wrong."""
    if any(each.band != "long shot" for each in found.explanations) or found.healthy:
        return ()
    line = found.run.crash.text if found.run and found.run.crash else ""
    steps = symptoms.next_steps(_seen(found.case, found.run), line)
    if steps or found.case.sightings or found.case.hits or (found.run and not found.run.signature.benign):
        return steps
    return (_("describe what goes wrong: the error line, the losses, or what the program does instead"),)


def _seen(case: Case, run: Run | None) -> list[str]:
    """The names of the symptoms, those of the error before those in words."""
    shown = sorted(run.signature.symptoms) if run and not run.signature.benign else []
    return [*shown, *(each.symptom for each in case.sightings)]
