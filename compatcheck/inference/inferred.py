"""What follows from the facts of an environment, apart from what was stated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

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


class Bounds(Protocol):
    """What bounds the facts that stay unknown; see `Inferred`."""

    @property
    def limits(self) -> Mapping[str, Limit]: ...
    @property
    def required(self) -> Mapping[str, str]: ...
    @property
    def python_range(self) -> str | None: ...
    @property
    def has_cuda(self) -> bool: ...


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
    value = inference.value
    if isinstance(value, Unknown):
        rest = environment.without(path)
        return rest._replace(reasons={**rest.reasons, path: value.reason}) if value.reason else rest
    if path.startswith("gpus."):
        return _with_gpu_fact(environment, path, value)
    return environment.with_fact(path, value, environment.locations.get(path) or inference.location)


def _with_gpu_fact(environment: Environment, path: str, value: object) -> Environment:
    _, number, fact = path.split(".")
    gpus = [{**gpu, fact: value} if at == int(number) else gpu for at, gpu in enumerate(environment.facts["gpus"])]
    return environment._replace(facts={**environment.facts, "gpus": gpus})
