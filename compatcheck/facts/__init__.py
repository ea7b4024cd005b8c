"""Stage 1: what is here. The door; each function loads what it needs when it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from compatcheck.model import dump as dump

if TYPE_CHECKING:
    from compatcheck.facts.project import Pins, Reading
    from compatcheck.model import Environment, Facts, Target


def find_target(python: str | None, environ: Mapping[str, str]) -> Target:
    """The interpreter to judge: ``--python``, the active environment, or the one we run in."""
    from compatcheck.facts import _target

    return _target.find_target(python, environ)


def collect(target: Target, environ_names: Iterable[str] = (), architectures: bool = True) -> Environment:
    """Everything the collectors can tell of a target without importing or running any of it."""
    from compatcheck.facts import _collect

    return _collect.collect(target, environ_names, architectures)


def read_paths(paths: Sequence[str], weights: bool = False) -> Reading:
    """What the user's own files say: training configurations, model folders, requirements."""
    from compatcheck.facts import project

    return project.read_paths(paths, weights)


def with_paths(
    environment: Environment, paths: Sequence[str], *, pins: Pins = "instead", weights: bool = False
) -> Environment:
    """The environment with what the user's own files say; see `compatcheck.facts.project.over`."""
    from compatcheck.facts import project

    return project.over(environment, project.read_paths(paths, weights), pins)


def requirements_among(paths: Sequence[str]) -> tuple[str, ...]:
    """The requirements files that the paths are or hold."""
    from compatcheck.facts import project

    return tuple(source.path for source in project.read_paths(paths).sources if source.kind == "requirements")


def top_level(target: Target) -> tuple[str, ...]:
    """The installed distributions that no other installed one asks for."""
    from compatcheck.facts import declared

    return declared.top_level(target)


def overlay(environment: Environment, facts: Facts) -> Environment:
    """The environment with these facts in the place of its own."""
    from compatcheck.facts import _merge

    return _merge.overlay(environment, facts)


def assume(environment: Environment, statement: str) -> Environment:
    """The environment with one ``key=value`` that the user states."""
    from compatcheck.facts import _assume

    return _assume.assume(environment, statement)


def assume_all(environment: Environment, statements: Iterable[str]) -> Environment:
    """The environment with every ``key=value`` that the user states, the last one counting.

    Raises `InputError` where one names no fact, or has a value that the fact cannot have.
    """
    for statement in statements:
        environment = assume(environment, statement)
    return environment


def load(text: str, source: str) -> Environment:
    """The environment that a snapshot states."""
    from compatcheck.facts import snapshot

    return snapshot.load(text, source)


def load_file(path: str) -> Environment:
    """The environment in a snapshot file; ``-`` is standard input."""
    from compatcheck.facts import snapshot

    return snapshot.load_file(path)
