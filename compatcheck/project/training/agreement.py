"""Put facts of several readings together: what all agree on, and what one leaves of another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from compatcheck.environment import Environment, Facts, Location, Unknown, lookup
from compatcheck.environment.merge import overlay
from compatcheck.project.training._readings import nested
from compatcheck.project.training.document import Said


def agreed(runs: Sequence[Facts], why: str) -> Facts:
    """The facts that all of them state alike; where they differ the fact is unknown for this reason."""
    flat = [dict(flattened(facts.known)) for facts in runs]
    paths = list(dict.fromkeys(path for each in flat for path in each))
    known: dict[str, object] = {}
    reasons: dict[str, str] = {}
    for path in paths:
        values = [each.get(path, Unknown) for each in flat]
        if all(type(value) is type(values[0]) and value == values[0] for value in values):
            known[path] = values[0]
        else:
            reasons[path] = why
    for facts in runs:
        reasons.update((path, reason) for path, reason in facts.reasons.items() if path not in known | reasons)
    locations: dict[str, Location] = {}
    for facts in reversed(runs):
        locations.update((path, at) for path, at in facts.locations.items() if path in known)
    return Facts(nested(known), reasons, locations)


def flattened(known: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    """Each fact with its dotted path."""
    for key, value in known.items():
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def without(facts: Facts, paths: Sequence[str]) -> Facts:
    """The facts less those at these paths; what stands below them goes with them."""

    def kept(path: str) -> bool:
        return not any(path == each or path.startswith(f"{each}.") for each in paths)

    known = nested({path: value for path, value in flattened(facts.known) if kept(path)})
    reasons = {path: why for path, why in facts.reasons.items() if kept(path)}
    return Facts(known, reasons, {path: at for path, at in facts.locations.items() if kept(path)})


def given(facts: Facts) -> Facts:
    """The facts that a file gives in so many words, without the defaults that follow from its silence."""
    flat = {path: value for path, value in flattened(facts.known) if path in facts.locations}
    return facts._replace(known=nested(flat))


def over_accelerate(below: Said, above: Said) -> Said:
    """A trainer over the accelerate config that starts it: what is off, or only left out, leaves it to accelerate."""
    facts = above.facts
    if "training.deepspeed" not in facts.locations and lookup(Environment(*facts), "training.deepspeed") is None:
        facts = without(facts, ("training.deepspeed",))
    if lookup(Environment(*facts), "training.mixed_precision") == "no":
        facts = without(facts, ("training.mixed_precision", "training.dtype"))
    decided = not isinstance(lookup(Environment(*facts), "training.deepspeed"), Unknown) or _names_deepspeed(above)
    result = Facts(*overlay(Environment(*below.facts), facts))
    if decided:
        return above._replace(facts=result)
    places = {**below.places, **above.places}
    return Said(result, {**below.names, **above.names}, {**below.inlined, **above.inlined}, places)


def _names_deepspeed(said: Said) -> bool:
    return "deepspeed" in said.names or "deepspeed" in said.inlined
