"""What is known of one environment: a nested mapping of facts, why others are unknown, and where each was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

SNAPSHOT_SCHEMA_VERSION = 1


class Location(NamedTuple):
    """Where a fact stands in the user's own files, in words ``file:line``; ``line`` counts from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Target(NamedTuple):
    """The interpreter whose environment is judged.

    ``search_path`` lists the folders distributions are looked for in, in import order.
    ``selected_by`` says in words why this interpreter was chosen.
    """

    executable: str
    version: str
    prefix: str
    search_path: tuple[str, ...]
    selected_by: str


class Facts(NamedTuple):
    """What one collector found.

    ``known`` is a part of the snapshot: a nested mapping in which ``None`` means "known to be
    absent" and a key that is missing means "unknown". ``reasons`` says why, by dotted path, for
    what was looked for and could not be told; ``locations`` says where a fact was read.
    """

    known: Mapping[str, Any]
    reasons: Mapping[str, str] = {}
    locations: Mapping[str, Location] = {}


class Environment(NamedTuple):
    """One environment as the snapshot states it; all collectors' facts merged."""

    facts: Mapping[str, Any]
    reasons: Mapping[str, str] = {}
    locations: Mapping[str, Location] = {}


class Unknown(NamedTuple):
    """The value of a fact nobody knows, with the reason where there is one."""

    reason: str | None = None


def dump(environment: Environment) -> dict[str, Any]:
    """The environment as a snapshot: JSON that `compatcheck.facts.load` reads back to the same value."""
    return {
        "schema_version": SNAPSHOT_SCHEMA_VERSION,
        **environment.facts,
        **({"unknown": dict(environment.reasons)} if environment.reasons else {}),
        **({"locations": {k: v._asdict() for k, v in environment.locations.items()}} if environment.locations else {}),
    }


def lookup(environment: Environment, path: str) -> Any:
    """The fact at a dotted path: its value, ``None`` where it is known to be absent, or `Unknown`.

    A distribution that is missing from a complete list is known to be absent, unless a range of it is asked for; below
    an absent parent everything is absent.
    """
    value: Any = environment.facts
    parts = path.split(".", 1) if path.startswith(("distributions.", "environ.")) else path.split(".")
    for part in parts:
        if value is None:
            return None
        if not isinstance(value, Mapping) or part not in value:
            asked = environment.facts.get("distribution_ranges") or {}
            if parts[0] == "distributions" and part not in asked and environment.facts.get("distributions_complete"):
                return None
            return Unknown(_reason(environment, path))
        value = value[part]
    return value


def _reason(environment: Environment, path: str) -> str | None:
    """The reason recorded for the path or for the nearest of its parents."""
    while path:
        if path in environment.reasons:
            return environment.reasons[path]
        path = path.rpartition(".")[0]
    return None
