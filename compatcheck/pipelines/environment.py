"""What there is to judge: an interpreter, a snapshot, and what the project files state over it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compatcheck.facts.project._pinned import Pins
    from compatcheck.model import Environment, Target


def environment(
    known: Any,
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
    from compatcheck import facts

    target = None if snapshot is not None else facts.find_target(python, os.environ)
    found = facts.collect(target, known.environ) if target else _recorded(snapshot)
    pins = pins or _pins_mode(python, target)
    stated = facts.with_paths(found, paths, pins=pins, weights=hash_weights, target=target) if paths else found
    judged = facts.assume_all(stated, assume)
    if target is None or judged.facts.get("distributions") != found.facts.get("distributions"):
        return judged, None
    return (judged if imports is False else _with_imports(judged, target, paths, examine=bool(imports))), target


def _recorded(snapshot: str | Mapping[str, Any] | None) -> Environment:
    from compatcheck import facts

    if isinstance(snapshot, Mapping):
        import json

        return facts.load(json.dumps(snapshot), "the snapshot")
    return facts.load_file(snapshot or "-")


def _with_imports(environment: Environment, target: Target, paths: tuple[str, ...], *, examine: bool) -> Environment:
    """The environment with the imports that fail in it: remembered ones, or found now, with progress."""
    from compatcheck import facts

    if not examine:
        return facts.with_imports(environment, target)
    from compatcheck._progress import imports_progress

    with imports_progress() as show:
        return facts.with_imports(environment, target, paths, examine=True, on_module=show)


def _pins_mode(python: str | None, target: Target | None) -> Pins:
    """What requirements mean beside an environment.

    An interpreter that is named counts as it is; into an active environment the pins will be installed; the one
    compatcheck happens to run in has nothing to do with them.
    """
    from compatcheck import facts

    if python is not None:
        return "ignored"
    own = target is not None and target.prefix == sys.prefix and not facts.is_active(os.environ)
    return "instead" if own else "over"
