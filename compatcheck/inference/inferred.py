"""What follows from the facts of an environment, apart from what was stated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from compatcheck.environment import Environment, Location, Unknown

Table = Callable[[str], Mapping[str, Any]]
"""A table of the matrix by its name."""


class Inference(NamedTuple):
    """The value that a fact has, in a sentence why, and the facts (by path) and tables (``tables/NAME``) behind it.

    A value of `Unknown` sets aside what was stated, or says why nothing can follow. ``location`` is where the user's
    files state what it follows from.
    """

    value: Any
    why: str
    sources: tuple[str, ...]
    location: Location | None = None


InferredFacts = Iterator[tuple[str, Inference]]


class Limit(NamedTuple):
    """The newest release of a package by the day of a report, and what a build of its main was at most, as a range.

    ``newest`` is None for what had no release by then, and was installed from its repository. ``recent`` are those that
    were the newest not long before. ``coming`` is None where the table of releases ends before it is known.
    """

    newest: str | None
    recent: tuple[str, ...]
    coming: str | None
    day: str


class Inferred(NamedTuple):
    """The facts that follow, by path, and what bounds those that stay unknown.

    ``limits`` holds by distribution what was out on the day of a report, ``required`` the range in which one must be
    there, ``python_range`` that of Python; ``has_cuda`` says that torch is built with some CUDA.
    """

    facts: Mapping[str, Inference] = {}
    limits: Mapping[str, Limit] = {}
    required: Mapping[str, str] = {}
    python_range: str | None = None
    has_cuda: bool = False

    def judged(self, stated: Environment) -> Judged:
        """The environment that they follow from, with them."""
        view = stated
        for path, inference in self.facts.items():
            view = with_inference(view, path, inference)
        return Judged(stated, self, view)


NOTHING = Inferred()


class Judged(NamedTuple):
    """An environment as it is judged: what was stated, what follows, and both together as one ``view``."""

    stated: Environment
    inferred: Inferred
    view: Environment


def with_inference(environment: Environment, path: str, inference: Inference) -> Environment:
    """The environment with one more fact, or without one that is set aside."""
    reasons = {each: why for each, why in environment.reasons.items() if each != path}
    locations = environment.locations
    if inference.location:
        locations = {path: inference.location, **locations}
    unknown = isinstance(inference.value, Unknown)
    if unknown and inference.value.reason:
        reasons[path] = inference.value.reason
    parts = _parts(path)
    facts = _without(environment.facts, parts) if unknown else _set(environment.facts, parts, inference.value)
    return environment._replace(facts=facts, reasons=reasons, locations=locations)


def _parts(path: str) -> list[str]:
    return path.split(".", 1) if path.startswith(("distribution", "environ.")) else path.split(".")


def _set(below: Any, path: list[str], value: Any) -> Any:
    """A copy of a mapping or list in which the value stands at the path."""
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(below, (list, tuple)):
        return [_set(each, rest, value) if at == int(name) else each for at, each in enumerate(below)]
    below = below if isinstance(below, Mapping) else {}
    return {**below, name: _set(below.get(name), rest, value)}


def _without(below: Mapping[str, Any], path: list[str]) -> dict[str, Any]:
    name, rest = path[0], path[1:]
    if not rest:
        return {key: value for key, value in below.items() if key != name}
    inside = below.get(name)
    return {**below, name: _without(inside, rest)} if isinstance(inside, Mapping) else dict(below)
