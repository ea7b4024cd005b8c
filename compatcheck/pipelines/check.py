"""Two stages of every verdict: compare an environment with the matrix, and let probes confirm or refute."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from compatcheck import advice, matrix
from compatcheck.environment import Environment, Target
from compatcheck.errors import NothingInspectedError
from compatcheck.explanation.ranking import score_of_finding, weights_of
from compatcheck.results.findings import STATUSES, Finding, Outcome, ProbeResult, Report, Status

OnProbe = Callable[[str, str, float], None]
"""Called with the name of the probe that runs, the stage it has reached, and the seconds left for all of them."""

if TYPE_CHECKING:
    from compatcheck import probes

_SEEN_IN_RESULTS = ("python", "platform", "distributions", "cuda", "gpus", "target")
_SEEN_BY_PROBES = ("gpu.", "cuda.", "torch_build.")
JUDGEMENT: dict[Outcome, Status] = {"fail": "confirmed", "pass": "refuted"}


def check(
    environment: Environment,
    known: matrix.Matrix,
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    now: float | None = None,
) -> Report:
    """Compare the environment with the matrix, which is stale or not at ``now``, in seconds since 1970 (today).

    Raises NothingInspectedError where nothing is known that an entry could speak of: no package, model or setting.
    """
    judged, findings = matrix.judge(known, environment)
    if not any(
        judged.view.facts.get(key)
        for key in ("distributions", "distribution_ranges", "model", "training", "unmet_requirements", "missing_names")
    ):
        seen = "no package, model or setting is known"
        raise NothingInspectedError(
            "judging", "the environment", seen, "pass an interpreter, a snapshot or project files"
        )
    chosen = [f for f in findings if (not select or f.id in select) and f.id not in ignore]
    advised = advice.recommend(judged.view, chosen)
    stale = matrix.is_stale(known, now)
    found = Report(environment, _likeliest_first(advised, known), known.revision, known.entries, known.date, stale)
    return found._replace(inferred=judged.inferred)


def confirm(
    report: Report,
    target: Target,
    *,
    budget_seconds: float | None = None,
    on_probe: OnProbe | None = None,
    device: str = "auto",
    fresh: bool = False,
) -> Report:
    """Run the probes that the findings name, in the target's own interpreter, and join their results.

    What was measured in the same environment before is remembered, unless ``fresh``.
    """
    from compatcheck import probes

    context = {**probe_context(report.judged.view), **({"device": device} if device != "auto" else {})}
    shipped = probes.names()  # a matrix that was fetched may name a probe that came later than this version
    trials = [_trial(finding, context) if finding.probe_name in shipped else None for finding in report.findings]
    distinct = list({repr(trial): trial for trial in trials if trial}.values())
    memory = probe_memory(report.environment, fresh)
    results = probes.run_all(
        distinct, target, budget_seconds=budget_seconds, on_progress=on_probe, memory=memory, partial=True
    )
    by_trial = {repr(trial): result for trial, result in zip(distinct, results)}
    joined = (weigh(finding, by_trial.get(repr(trial))) for finding, trial in zip(report.findings, trials))
    return report._replace(findings=worst_first(joined))


def probe_context(environment: Environment) -> dict[str, Any]:
    """What every probe is told of the user's own run: its settings, its dtype, its model where the files are here."""
    context: dict[str, Any] = {}
    training = environment.section("training")
    if training:
        context["training"] = training
    if training.get("dtype"):
        context["dtype"] = training["dtype"]
    memories = [gpu["memory_mib"] for gpu in environment.facts.get("gpus") or () if gpu.get("memory_mib")]
    if memories:
        context["memory_mib"] = min(memories)
    place = environment.locations.get("model")
    if place and os.path.isfile(os.path.join(place.file, "config.json")):
        from compatcheck.project.model_files.model import model_config

        context["config"], context["model_folder"] = model_config(place.file)
    return context


def probe_memory(environment: Environment, fresh: bool) -> probes.Memory:
    """What of the environment a remembered result hangs on."""
    from compatcheck import probes

    seen = {key: environment.facts.get(key) for key in _SEEN_IN_RESULTS}
    return probes.Memory(json.dumps(seen, sort_keys=True, default=str), fresh)


def _trial(finding: Finding, context: dict[str, Any]) -> tuple[str, dict[str, object]] | None:
    """The probe a finding names and what it is asked: the user's context, and before it the entry's own request."""
    return (finding.probe_name, {**context, **finding.probe_request}) if finding.probe_name else None


def weigh(finding: Finding, result: ProbeResult | None) -> Finding:
    """A probe rules only for a finding that names it, and one that could not decide leaves it as it was.

    A failure shows that the fault is live on this machine, except where what the probe measures does not even run.
    Whether the user's own settings and model run into it is another matter, so a finding that lacks such facts stays
    possible.
    """
    status = JUDGEMENT.get(result.outcome, finding.status) if result and not result.unusable else finding.status
    if status == "confirmed" and not all(path.startswith(_SEEN_BY_PROBES) for path in finding.missing):
        status = finding.status
    return finding._replace(status=status, probe=result)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings by status; of one status in the order at hand."""
    return tuple(sorted(findings, key=lambda finding: STATUSES.index(finding.status)))


def _likeliest_first(findings: Iterable[Finding], known: matrix.Matrix) -> tuple[Finding, ...]:
    """The findings by status; those that are possible by how much the facts speak for each, the others by id."""
    weights = weights_of(known)

    def order(finding: Finding) -> tuple[int, float, str]:
        likely = score_of_finding(finding, weights) if finding.status == "possible" else 0.0
        return STATUSES.index(finding.status), -likely, finding.id

    return tuple(sorted(findings, key=order))
