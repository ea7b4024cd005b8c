"""The facts on which an entry is reported: those that its matching table speaks of and that are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.environment.paths import distribution_of
from compatcheck.environment.vocabulary import EVERY_GPU
from compatcheck.inference.inferred import Judged
from compatcheck.language import gettext as _
from compatcheck.matrix.matching.match import Verdict
from compatcheck.results.findings import HeldFact


def held_facts(verdict: Verdict, judged: Judged) -> tuple[HeldFact, ...]:
    """Each fact of the table that holds, once, in the table's order; what is missing is left out."""
    paths = (path for path in dict.fromkeys(verdict.paths) if path not in verdict.missing)
    return tuple(held for path in paths for held in _held(path, judged))


def _held(path: str, judged: Judged) -> Iterator[HeldFact]:
    section, _dot, name = path.partition(".traits.")
    if name:
        if at := judged.view.locations.get(path):
            yield HeldFact(path, True, at)
        return
    value = _value(path, judged.view)
    if path == "traits" or isinstance(value, Unknown):
        return
    at = _place(path, judged.view.locations)
    yield HeldFact(path, value, at, "" if at else _origin(path, judged))


def _value(path: str, environment: Environment) -> Any:
    """The value at the path of a condition: of GPUs each value once, of a section that it is there."""
    gpu = next((prefix for prefix in EVERY_GPU if path.startswith(prefix)), None)
    if gpu:
        values = [each.get(path[len(gpu) :]) for each in environment.facts.get("gpus") or ()]
        known = list(dict.fromkeys(value for value in values if value is not None))
        return (known[0] if len(known) == 1 else known) if known else Unknown()
    value = environment.get(path)
    if isinstance(value, Unknown) and (name := distribution_of(path)):
        return environment.section("distribution_ranges").get(name, value)
    return "present" if isinstance(value, Mapping) else value


def _place(path: str, locations: Mapping[str, Location]) -> Location | None:
    """Where the files state it: at its own line, else at that of the section that holds it."""
    if path.startswith(EVERY_GPU):
        path = "gpus"
    while path:
        if path in locations:
            return locations[path]
        path = path.rpartition(".")[0] if not distribution_of(path) else ""
    return None


def _origin(path: str, judged: Judged) -> str:
    """Where a fact comes from that no file states: a reason for what is inferred, or that it is installed."""
    if path in judged.inferred.facts:
        return _(judged.inferred.facts[path].why)
    return _("installed") if distribution_of(path) and "target" in judged.stated.facts else ""
