"""What there is to judge: an interpreter, a snapshot, and what the project files state over it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compatcheck.language import marked

if TYPE_CHECKING:
    from compatcheck.environment import Environment, Target
    from compatcheck.matrix import Matrix
    from compatcheck.project.overlay import Pins

_NOT_THE_RUNS = marked(
    "compatcheck's own environment, which holds no torch; name the run's with --python, or its requirements"
)
_TRAINERS = ("torch", "jax", "tensorflow", "mlx")


def environment(
    known: Matrix,
    paths: tuple[str, ...],
    python: str | None,
    snapshot: str | Mapping[str, Any] | None,
    assume: tuple[str, ...],
    hash_weights: bool = False,
    imports: bool | None = None,
    pins: Pins | None = None,
) -> tuple[Environment, Target | None]:
    """The environment to judge, and the interpreter its probes can run in, where it is a real one on this machine.

    ``snapshot`` is a file, ``-`` for standard input, or its content. ``imports`` follows the imports of that
    interpreter; None takes what is remembered of them. ``pins`` is what requirements mean beside it; None takes what
    the way it was named suggests.
    """
    found, target = (_recorded(snapshot), None) if snapshot is not None else _installed(python, known)
    found = _not_of_the_run(found) if _is_our_own(python, target) else found
    pins = pins or _pins_mode(python, target)
    stated = found
    if paths:
        from compatcheck.project.overlay import with_paths

        stated = with_paths(found, paths, pins=pins, weights=hash_weights, target=target)
    judged = stated
    if assume:
        from compatcheck.environment.assumptions import assume_all

        judged = assume_all(stated, assume)
    if target is None or judged.facts.get("distributions") != found.facts.get("distributions"):
        return judged, None
    return (judged if imports is False else _with_imports(judged, target, paths, examine=bool(imports))), target


def _installed(python: str | None, known: Matrix) -> tuple[Environment, Target]:
    from compatcheck.installed.collect import collect
    from compatcheck.installed.target import find_target

    target = find_target(python, os.environ)
    return collect(target, known.environ), target


def _recorded(snapshot: str | Mapping[str, Any]) -> Environment:
    from compatcheck.environment.snapshot import load_snapshot, read_snapshot

    if isinstance(snapshot, Mapping):
        import json

        return load_snapshot(json.dumps(snapshot), "the snapshot")
    return read_snapshot(snapshot or "-")


def _with_imports(environment: Environment, target: Target, paths: tuple[str, ...], *, examine: bool) -> Environment:
    """The environment with the imports that fail in it: remembered ones, or found now, with progress."""
    from compatcheck.import_check import with_imports

    if not examine:
        return with_imports(environment, target)
    from compatcheck.terminal.progress import imports_progress

    with imports_progress() as show:
        return with_imports(environment, target, paths, examine=True, on_module=show)


def _pins_mode(python: str | None, target: Target | None) -> Pins:
    """What requirements mean beside an environment.

    An interpreter that is named counts as it is; into an active environment the pins will be installed; the one
    compatcheck happens to run in has nothing to do with them.
    """
    if python is not None:
        return "ignored"
    return "instead" if _is_our_own(python, target) else "over"


def _is_our_own(python: str | None, target: Target | None) -> bool:
    """Whether it is only judged because compatcheck happens to run in it."""
    from compatcheck.installed.target import is_active

    return python is None and target is not None and target.prefix == sys.prefix and not is_active(os.environ)


def _not_of_the_run(found: Environment) -> Environment:
    """Our own environment, where nothing in it trains: what it lacks, the run need not lack, and that is told."""
    if any(name in _TRAINERS for name in found.section("distributions")):
        return found
    run = found.without("unmet_requirements").with_fact("distributions_complete", False)
    return run._replace(reasons={"distributions": _NOT_THE_RUNS, **run.reasons})
