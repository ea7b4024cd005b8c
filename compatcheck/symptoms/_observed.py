"""What was observed in a run, as facts that a condition of the matrix may speak of."""

from __future__ import annotations

import math

from compatcheck.environment import Environment, Location
from compatcheck.results.logs import Run

_NONFINITE = ("nan-gradients-filtered", "deepspeed-sentinel", "loss-nan", "grad-norm-nan", "overflow-at-every-step")
_INTERMITTENT = ("labels-masked-sometimes", "loss-nan-sometimes", "loss-scaler-skips")


def with_observed(facts: Environment, run: Run | None, *, zero_is_normal: bool = False) -> Environment:
    """The facts with ``training.observed`` of the run: its last reading, and where the symptom began.

    Of a run that is bad at single steps only, neither good nor bad values stand for the whole: none is stated.
    Neither is a zero that is normal, as in a policy gradient whose rewards are all equal.
    """
    if run is None or run.last is None:
        return facts
    names = {run.signature.name, *(note.name for note in run.notes)}
    observed: dict[str, object] = {}
    if not names & set(_INTERMITTENT):
        observed.update({name: run.last.values[name] for name in ("loss", "grad_norm") if name in run.last.values})
    if names & set(_NONFINITE):
        observed["nonfinite"] = True
    elif run.signature.name == "healthy" and not run.notes and len(observed) == 2:
        observed["nonfinite"] = not all(math.isfinite(run.last.values[name]) for name in observed)
    if zero_is_normal:
        observed = {name: value for name, value in observed.items() if value is False or value != 0}
    if run.onset is not None:
        if "eval_loss" in run.onset.values:
            observed["eval_loss"] = run.onset.values["eval_loss"]
        if run.onset.step is not None and not run.onset.about and not run.signature.benign:
            observed["onset_step"] = int(run.onset.step)
    if not observed:
        return facts
    at = run.onset.location if run.onset and not run.signature.benign else run.last.location
    locations = {f"training.observed.{name}": Location(at.file, at.line) for name in observed}
    training = {**facts.section("training"), "observed": observed}
    return Environment({**facts.facts, "training": training}, facts.reasons, {**facts.locations, **locations})
