"""Put facts together: collectors' pieces into one environment, and one environment over another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compatcheck.environment import Environment, Facts, Location, Unknown, lookup

EMPTY = Environment({})


def merged(pieces: Iterable[Facts]) -> Environment:
    """One environment of pieces that do not overlap; lists of the same key are joined.

    Raises `ValueError` where two pieces state one fact, which is a bug of the collectors.
    """
    facts: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    locations: dict[str, Location] = {}
    for piece in pieces:
        _join(facts, piece.known, "")
        reasons.update(piece.reasons)
        locations.update(piece.locations)
    return Environment(facts, reasons, locations)


def overlay(environment: Environment, facts: Facts) -> Environment:
    """The environment with these facts in place of its own; their reasons count where nothing is known."""
    known = _over(environment.facts, facts.known)
    replaced = Environment(known, environment.reasons, environment.locations)
    reasons = {path: why for path, why in environment.reasons.items() if not _stated(facts.known, path)}
    reasons.update((path, why) for path, why in facts.reasons.items() if isinstance(lookup(replaced, path), Unknown))
    locations = {path: at for path, at in environment.locations.items() if not _stated(facts.known, path)}
    return Environment(known, reasons, {**locations, **facts.locations})


def _join(into: dict[str, Any], piece: Mapping[str, Any], path: str) -> None:
    for key, value in piece.items():
        where = f"{path}{key}"
        if key not in into:
            into[key] = _copied(value)
        elif isinstance(value, Mapping) and isinstance(into[key], dict):
            _join(into[key], value, f"{where}.")
        elif isinstance(value, list) and isinstance(into[key], list):
            into[key] = into[key] + value
        else:
            raise ValueError(f"two collectors state {where}")


def _over(below: Any, above: Any) -> Any:
    if not isinstance(above, Mapping):
        return above
    result = dict(below) if isinstance(below, Mapping) else {}
    for key, value in above.items():
        result[key] = _over(result.get(key), value)
    return result


def _copied(value: Any) -> Any:
    return {key: _copied(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def _stated(known: Mapping[str, Any], path: str) -> bool:
    return not isinstance(lookup(Environment(known), path), Unknown)
