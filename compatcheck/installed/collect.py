"""Run the collectors on one target; the order is fixed and the search path is scanned once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compatcheck.environment import Environment, Location, Target
from compatcheck.environment.paths import merge
from compatcheck.installed import ascend, declared, distributions, driver, environ, host, rocm, toolkit, torch_build


def collect(target: Target, environ_names: Iterable[str] = (), architectures: bool = True) -> Environment:
    """What is here, for one target: nothing of it is imported or run.

    ``environ_names`` are the variables to report; ``architectures`` is whether to look inside torch's
    library for the GPU architectures it was compiled for.
    """
    inventory = distributions.scan(target)
    return join(
        (
            host.collect(target),
            distributions.collect(target, inventory),
            declared.collect(target, inventory),
            torch_build.collect(target, inventory, architectures),
            driver.presence(),
            collect_machine(environ_names),
        )
    )


def collect_machine(environ_names: Iterable[str] = ()) -> Environment:
    """The part that is the same for every interpreter: the platform, the drivers, GPUs, toolkits and variables."""
    return join(
        (
            host.collect_platform(),
            driver.collect(),
            rocm.collect(),
            ascend.collect(),
            toolkit.collect(),
            environ.collect(environ_names),
        )
    )


def join(pieces: Iterable[Environment]) -> Environment:
    """One environment of pieces that do not overlap; lists of the same key are joined.

    Raises `ValueError` where two pieces state one fact, which is a bug of the collectors.
    """
    facts: dict[str, object] = {}
    reasons: dict[str, str] = {}
    locations: dict[str, Location] = {}
    for piece in pieces:
        _add(facts, piece.facts, "")
        reasons.update(piece.reasons)
        locations.update(piece.locations)
    return Environment(facts, reasons, locations)


def _add(into: dict[str, Any], piece: Mapping[str, Any], above: str) -> None:
    for key, value in piece.items():
        if key not in into:
            into[key] = merge({}, value)
        elif isinstance(value, Mapping) and isinstance(into[key], dict):
            _add(into[key], value, f"{above}{key}.")
        elif isinstance(value, list) and isinstance(into[key], list):
            into[key] = into[key] + value
        else:
            raise ValueError(f"two collectors state {above}{key}")
