"""From logs and an environment to the entries that explain what is seen: the symptoms stage and the matrix, joined.

An entry explains a log by its error pattern, or by naming the symptom that the log shows. What is known then ranks
the entries and drops those it refutes; where nothing is known of an environment, the pattern alone is enough.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from compatcheck import advice, matrix, symptoms
from compatcheck.environment import Environment
from compatcheck.errors import NothingInspectedError
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.report import because
from compatcheck.report.steps import step_text
from compatcheck.results.logs import Diagnosis, Dropped, Explanation, Fit, Hit, Log, Run, Signature, Suspect

MOST_EXPLANATIONS = 5
_FITS: tuple[Fit, ...] = ("affected", "possible", "open")
_CONFIDENCES = ("reproduced", "upstream-fixed", "corroborated", "reported")
_MEANING = {
    "affected": marked("all of its conditions hold"),
    "possible": marked("its known conditions hold"),
    "open": marked("no known fact rules it out"),
}


def diagnose(
    paths: Sequence[str], environment: Environment, known: matrix.Matrix, stated: Environment | None = None
) -> Diagnosis:
    """What the logs show, and what explains it in this environment.

    The environment may be empty. What a log states of the run that wrote it stands over it, and ``stated``, which the
    user says, over both. Raises NothingInspectedError where no log holds anything of a training run.
    """
    patterns = matrix.patterns(known)
    logs = tuple(symptoms.read(path, patterns) for path in paths)
    log = _judge_logs(logs)
    run = log.last or _run_from_hits(log)
    if run is None:
        seen = "no loss, exception or known error line is in it"
        advised = "give the output of the trainer, trainer_state.json or a traceback"
        raise NothingInspectedError("diagnosing", ", ".join(log.path for log in logs), seen, advised)
    given = bool(environment.facts)
    judged = matrix.infer(known, _with_logs(environment, logs, log, stated))
    environment = judged.view
    hits = {hit.entry: hit for each in reversed(logs) for hit in reversed(each.hits)}
    suspects = list(matrix.suspects(known, judged))
    hits |= {each.finding.id: hit for each in suspects if (hit := _missing_name_hit(each, environment))}
    signatures = () if run.signature.benign else (run.signature, *run.notes)
    explained = [_explanation(each, signatures, hits, environment) for each in suspects if each.fit]
    ranked = sorted((each for each in explained if each), key=lambda each: _rank(each, signatures, suspects))
    dropped = tuple(
        Dropped(each.finding.id, each.finding.title, each.against, hits.get(each.finding.id))
        for each in suspects
        if each.fit is None and (each.finding.id in hits or any(_decides(each, s) for s in signatures))
    )
    telling = [each for each in ranked if each.fit != "open" or each.line]
    shown = _with_differences((telling or ranked)[:MOST_EXPLANATIONS])
    more = len(ranked) - len(shown)
    judged_by = (known.revision, known.entries, known.date, matrix.is_stale(known))
    return Diagnosis(logs, log, run, tuple(shown), more, dropped, judged.stated, given, *judged_by, judged.inferred)


def _judge_logs(logs: Sequence[Log]) -> Log:
    """The log that is judged: one with a fault before a healthy one, and one with a run before one without."""

    def order(log: Log) -> tuple[bool, bool, bool]:
        run = log.last
        return (run is None or run.signature.benign, not log.hits, run is None)

    return min(logs, key=order)


def _run_from_hits(log: Log) -> Run | None:
    """A log without a run, in which an entry's pattern matches a line."""
    if not log.hits:
        return None
    line = log.hits[0].location.line or 1
    words = marked("a line that a matrix entry matches")
    return Run(Signature("known-error-line", words), line, line, 0)


def _with_logs(environment: Environment, logs: Iterable[Log], judged: Log, stated: Environment | None) -> Environment:
    """The environment with what the logs state; what was observed is that of the judged log alone."""

    for log in logs:
        if log is not judged:
            environment = environment.overlay(log.facts.without("training.observed"))
    environment = environment.overlay(judged.facts)
    return environment.overlay(stated) if stated else environment


def _missing_name_hit(suspect: Suspect, environment: Environment) -> Hit | None:
    """The line of the error that says which name is missing, for the entry that knows who has it."""
    said = environment.locations.get("missing_names")
    finding = suspect.finding
    return Hit(finding.id, finding.summary, said) if said and finding.location == said and suspect.fit else None


def _decides(suspect: Suspect, signature: Signature) -> bool:
    return bool(signature.decisive.intersection(suspect.entry.get("symptoms", ())))


def _explanation(
    suspect: Suspect, signatures: Sequence[Signature], hits: Mapping[str, Hit], environment: Environment
) -> Explanation | None:
    """The entry as an explanation, or None where nothing in the log speaks for it.

    A sign that many faults share, such as an import error, counts only where the facts speak for the entry as well.
    """
    hit = hits.get(suspect.finding.id)
    shown = [s for s in signatures if _decides(suspect, s) and (s.narrow or suspect.fit != "open")]
    if suspect.fit is None or not (hit or shown):
        return None
    why = []
    if hit:
        said = _("its error line is in {place}: {line}")
        why.append(said.format(place=hit.location, line=hit.text))
    for signature in shown:
        shared = sorted(signature.symptoms.intersection(suspect.entry["symptoms"]))
        why.append(_("it causes what the log shows: {symptoms}").format(symptoms=", ".join(shared)))
    known = because.held(suspect.finding.because)
    why.append(_(_MEANING[suspect.fit]) + (f": {known}" if known else ""))
    finding = next(iter(advice.recommend(environment, [suspect.finding])))
    return Explanation(finding, suspect.fit, tuple(why), (), tuple(suspect.entry.get("misleading", ())), hit)


def _rank(
    explanation: Explanation, signatures: Sequence[Signature], suspects: Iterable[Suspect]
) -> tuple[bool, int, int, int, int, str]:
    """Its own error line first; then how the facts stand, how much of the symptom it names, how much it demands.

    What was observed says no more than the symptom did, so it counts for nothing here; of equals, the better proved.
    """
    entry = next(each.entry for each in suspects if each.finding.id == explanation.finding.id)
    shown = set().union(*(signature.symptoms for signature in signatures)) if signatures else set()
    shared = len(shown.intersection(entry.get("symptoms", ())))
    asked = max(sum(not path.startswith("training.observed.") for path in table) for table in entry["affected"])
    specific = asked - len(set(explanation.finding.missing))
    proof = _CONFIDENCES.index(explanation.finding.confidence)
    order = _FITS.index(explanation.fit)
    return (explanation.line is None, order, -shared, -specific, proof, explanation.finding.id)


def _with_differences(explanations: Sequence[Explanation]) -> list[Explanation]:
    """What would tell each explanation from the next: its own missing facts, its probe, a setting to try."""
    told = []
    for number, explanation in enumerate(explanations):
        finding = explanation.finding
        others = {path for other in explanations if other is not explanation for path in other.finding.missing}
        missing = list(dict.fromkeys(finding.missing))
        own = [path for path in missing if path not in others] or missing
        ways = []
        if own:
            ways.append(_("state {facts} (--assume {first}=...)").format(facts=", ".join(own), first=own[0]))
        if finding.probe_name:
            asked = f" --request '{json.dumps(finding.probe_request)}'" if finding.probe_request else ""
            command = f"compatcheck probe {finding.probe_name}{asked}"
            ways.append(_("run {command} in the environment that wrote the log").format(command=command))
        flip = next((remedy for remedy in finding.remedies if remedy.kind in ("config", "environ")), None)
        if flip and number + 1 < len(explanations) and flip.steps:
            ways.append(_("try a few steps with: {step}").format(step=step_text(flip.steps[0])))
        told.append(explanation._replace(tells_apart=tuple(ways)))
    return told
