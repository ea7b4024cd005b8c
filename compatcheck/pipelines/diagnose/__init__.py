"""From whatever a person has to the entries that explain it: reports, logs, scripts and environments, as one case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck import advice, matrix
from compatcheck.errors import NothingInspectedError
from compatcheck.explanation import evidence, questions
from compatcheck.explanation.features import Context
from compatcheck.explanation.ranking import Ranked, band, rank
from compatcheck.language import gettext as _
from compatcheck.pipelines.diagnose._case import Given, Reading, case_of_text, judged_log, read_case
from compatcheck.results.diagnoses import Diagnosis, Evidence, Explanation
from compatcheck.results.logs import Fit, Log, Run, Signature

__all__ = ["Given", "case_of_text", "diagnose", "explain", "read_case"]

MOST_EXPLANATIONS = 20
"""Explanations that are spelt out; the rest are less probable than any reader looks at."""

LEAST = 0.002
"""Probability below which an explanation is not worth a line."""


def diagnose(given: Given, known: matrix.Matrix) -> Diagnosis:
    """What is given, what it shows, and what explains it.

    Raises `NothingInspectedError` where nothing at all could be read, `InputError` where something cannot be read.
    """
    return explain(read_case(given, known), known, ", ".join(given.paths))


def explain(reading: Reading, known: matrix.Matrix, subject: str) -> Diagnosis:
    """What a case shows and what explains it."""
    case, logs = reading.case, reading.logs
    log = judged_log(logs)
    run = (log.last or _run_from_hits(log)) if log else None
    if not (case.environment.facts or case.sightings or case.hits or case.said or run):
        seen = "no version, setting, loss or error is in it"
        raise NothingInspectedError("diagnosing", subject, seen, "paste the versions, the log or the error")
    context, ranked = rank(case, known)
    explained = [each for each in ranked[:MOST_EXPLANATIONS] if each.probability >= LEAST]
    explanations = tuple(_explanation(each, explained, context, known) for each in explained)
    judged_by = (known.revision, known.entries, known.date, matrix.is_stale(known))
    mismatch = tuple(_mismatch(reading, ranked, context))
    given = bool(reading.named.facts)
    return Diagnosis(case, logs, log, run, explanations, mismatch, (), given, context.judged.inferred, *judged_by)


def _run_from_hits(log: Log) -> Run | None:
    """A log without a run, in which an entry's pattern matches a line."""
    if not log.hits:
        return None
    line = log.hits[0].location.line or 1
    return Run(Signature("known-error-line", "a line that a matrix entry matches"), line, line, 0)


def _explanation(ranked: Ranked, others: Sequence[Ranked], context: Context, known: matrix.Matrix) -> Explanation:
    weighing = ranked.weighing
    finding = matrix.finding_of(known, weighing.row, weighing.verdict, context.judged)
    (finding,) = advice.recommend(context.judged.view, [finding])
    return Explanation(
        finding,
        ranked.probability,
        band(ranked.probability),
        _fit(ranked),
        evidence.speaks_for(weighing, context),
        evidence.speaks_against(weighing, context),
        questions.asks(finding, ranked, others),
        matrix.misleading(known, weighing.row),
    )


def _fit(ranked: Ranked) -> Fit | None:
    verdict = ranked.weighing.verdict
    if verdict.holds is False:
        return None
    return "affected" if verdict.holds else "possible" if verdict.narrowed else "open"


def _mismatch(reading: Reading, ranked: Sequence[Ranked], context: Context) -> Iterator[Evidence]:
    """Why the environment that was named cannot have written the log."""
    if not reading.named.facts:
        return
    for path, value in reading.named.flat().items():
        stated = reading.case.environment.get(path)
        if path.startswith(("distributions.", "python")) and isinstance(stated, str) and stated != value:
            at = reading.case.environment.locations.get(path)
            text = _("the named environment has {name} {value}, the log was written with {stated}")
            name = path.removeprefix("distributions.")
            yield Evidence(text.format(name=name, value=value, stated=stated), at)
    hit = [each for each in ranked if each.weighing.hits]
    if hit and all(each.weighing.verdict.holds is False for each in hit):
        best = hit[0].weighing
        against = next(iter(evidence.speaks_against(best, context)), None)
        text = _("its error line is known from {entry}, which the named environment rules out: {why}")
        yield Evidence(text.format(entry=best.row.id, why=against.text if against else ""), best.hits[0].location)
