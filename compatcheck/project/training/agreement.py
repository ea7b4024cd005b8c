"""Put facts of several readings together: what all agree on, and what one leaves of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.environment.vocabulary import fact_at
from compatcheck.project.training._contradiction import FACT as CONTRADICTIONS
from compatcheck.project.training.document import Configuration


def agreed(runs: Sequence[Environment], why: str) -> Environment:
    """The facts that all of them state alike; where they differ the fact is unknown for this reason.

    Contradictions stop the run that has them, so that those of all runs are kept. A fact that no condition can speak of
    gets no reason: nobody asks for it.
    """
    flat = [facts.flat() for facts in runs]
    found = [each for facts in flat for each in cast("list[object]", facts.pop(CONTRADICTIONS, None) or ())]
    paths = list(dict.fromkeys(path for each in flat for path in each))
    distinct = [each for place, each in enumerate(found) if each not in found[:place]]
    known: dict[str, object] = {CONTRADICTIONS: distinct} if distinct else {}
    reasons: dict[str, str] = {}
    for path in paths:
        values = [each.get(path, Unknown) for each in flat]
        if all(type(value) is type(values[0]) and value == values[0] for value in values):
            known[path] = values[0]
        elif (fact := fact_at(path)) is None or not fact.used_by:
            reasons[path] = why
    for facts in runs:
        reasons.update((path, reason) for path, reason in facts.reasons.items() if path not in known | reasons)
    locations: dict[str, Location] = {}
    for facts in reversed(runs):
        locations.update((path, at) for path, at in facts.locations.items() if path in known)
    return Environment.from_flat(known, reasons, locations)


def agreed_configuration(said: Sequence[Configuration], why: str) -> Configuration:
    """The facts that all of them state alike, and the files that all of them name or hold alike."""
    first = said[0]
    if len(said) == 1:
        return first
    names = {kind: name for kind, name in first.names.items() if all(each.names.get(kind) == name for each in said)}
    inlined = {
        kind: inner
        for kind, inner in first.inlined.items()
        if all(kind in each.inlined and each.inlined[kind].value == inner.value for each in said)
    }
    return Configuration(agreed([each.facts for each in said], why), names, inlined, first.places)


def given(facts: Environment) -> Environment:
    """The facts that a file gives in so many words, without the defaults that follow from its silence."""
    stated = {path: value for path, value in facts.flat().items() if path in facts.locations}
    return Environment.from_flat(stated, facts.reasons, facts.locations)


def over_accelerate(below: Configuration, above: Configuration) -> Configuration:
    """A trainer over the accelerate config that starts it: what is off, or only left out, leaves it to accelerate."""
    facts = above.facts
    if "training.deepspeed" not in facts.locations and facts.get("training.deepspeed") is None:
        facts = facts.without("training.deepspeed")
    if facts.get("training.mixed_precision") == "no":
        facts = facts.without("training.mixed_precision", "training.dtype")
    decided = not isinstance(facts.get("training.deepspeed"), Unknown) or _names_deepspeed(above)
    above = above._replace(facts=facts)
    return above._replace(facts=below.facts.overlay(facts)) if decided else below.overlay(above)


def _names_deepspeed(config: Configuration) -> bool:
    return "deepspeed" in config.names or "deepspeed" in config.inlined
