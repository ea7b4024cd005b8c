"""A part of the sets of versions that are possible, what they cost at least, and how it is divided."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from typing import NamedTuple

from compatcheck.advice.model import Demands, Solution
from compatcheck.advice.search._conflict import Step
from compatcheck.advice.search._cost import (
    BACKEND,
    GONE,
    Span,
    admits,
    cheapest,
    cost,
    intersect,
    is_major,
    specifiers,
    within,
)


class State(NamedTuple):
    """The sets of versions that satisfy the demands.

    ``kept`` are the distributions that all these sets hold: those of the user, and those of which the sets without
    them are another state. ``solution`` is one of the sets where one is known. ``missed`` tells that the versions
    nearest to the preferred ones were tried in vain, ``divided`` the distributions of which that is so, ``rest`` that
    the nearest were found to be there, so that a refusal of the others explains nothing.
    """

    demands: Demands
    kept: Set[str]
    path: tuple[Step, ...] = ()
    solution: Solution | None = None
    missed: bool = False
    divided: frozenset[str] = frozenset()
    rest: bool = False


class Scale(NamedTuple):
    """What distances are measured from; ``preferred`` are the versions of counted names."""

    preferred: Mapping[str, str]
    start: Demands
    by_hand_cost: int

    def least(self, state: State, *, staying: bool = False) -> int:
        """What every set of the state costs at least. What may leave costs nothing, unless it is ``staying``."""
        prices = (self.least_of(name, state, staying=staying) for name in self._limited_names(state))
        return sum(prices, self.around(state.demands))

    def least_of(self, name: str, state: State, *, staying: bool = False) -> int:
        specifier = state.demands.specifiers.get(name, "")
        if specifier == GONE or not (staying or name in state.kept):
            return 0
        return cheapest(self.preferred[name], specifier) or 0

    def major_steps(self, state: State) -> int:
        """How many distributions change their major version at least, if none leaves."""
        return sum(is_major(self.least_of(name, state, staying=True)) for name in self._limited_names(state))

    def around(self, demands: Demands) -> int:
        """What the demands cost besides versions: another build of torch, and changes by hand."""
        built = BACKEND if demands.torch_backend != self.start.torch_backend else 0
        return built + self.by_hand_cost * len(set(demands.by_hand) - set(self.start.by_hand))

    def _limited_names(self, state: State) -> set[str]:
        return state.demands.specifiers.keys() & self.preferred.keys()

    def nearest(self, state: State) -> list[tuple[str, Span]]:
        """For each distribution that cannot stay where it is, the nearest versions."""
        found = []
        for name in sorted(self._limited_names(state) - state.divided):
            least = self.least_of(name, state, staying=True)
            span = within(self.preferred[name], least) if least else None
            if span:
                found.append((name, span))
        return found

    def tighten(self, state: State, limit: int) -> Demands | None:
        """The demands without what by itself makes a set cost ``limit`` or more; None where nothing is left."""
        room = limit - 1 - self.least(state)
        spans = ((name, within(old, self.least_of(name, state) + room)) for name, old in self.preferred.items())
        tight = add_demands(state, Demands({name: span.inside for name, span in spans if span})) if room >= 0 else None
        return tight.demands if tight else None

    def dearest(self, state: State, solution: Solution) -> str | None:
        """The distribution that costs most above the least it must."""
        excess = {
            name: cost(old, solution.versions[name]) - self.least_of(name, state)
            for name, old in self.preferred.items()
            if name in solution.versions
        }
        worst = max(excess, key=lambda name: (excess[name], name), default=None)
        return worst if worst and excess[worst] > 0 else None


def add_demands(state: State, way: Demands, start: Demands | None = None) -> State | None:
    """The state with further demands; None where they contradict those it has.

    The build of torch is changed once at most, from that of the start.
    """
    further = _limit_versions(state, way.specifiers)
    backend = state.demands.torch_backend
    if way.torch_backend not in (None, backend):
        if start is None or backend != start.torch_backend:
            return None
        backend = way.torch_backend
    if any(further.demands.specifiers[name] == GONE for name in way.specifiers if name in state.kept):
        return None
    by_hand = tuple(sorted({*state.demands.by_hand, *way.by_hand}))
    return further._replace(demands=further.demands._replace(torch_backend=backend, by_hand=by_hand))


def _limit_versions(state: State, limits: Mapping[str, str]) -> State:
    """The state held to further limits. A distribution to which they leave no version is not in its sets."""
    old = state.demands.specifiers
    merged = {name: intersect(old[name], limit) if name in old else limit for name, limit in limits.items()}
    return state._replace(demands=state.demands._replace(specifiers={**old, **merged}))


def narrow(state: State, spans: Collection[tuple[str, Span]]) -> State:
    """The sets of the state that lie in the spans or lack their distributions."""
    return _check_solution(_limit_versions(state, {name: span.inside for name, span in spans}))


def complement(state: State, spans: Collection[tuple[str, Span]]) -> Iterator[State]:
    """The states that with the narrowed one make up the whole."""
    near = state
    for name, span in spans:
        for side in (span.above, span.below):
            far = add_demands(near._replace(kept=near.kept | {name}), Demands({name: side}))
            if far:
                yield _check_solution(far)
        near = _limit_versions(near, {name: span.inside})


def without(state: State, name: str) -> State:
    """The sets of the state that lack the distribution."""
    return _check_solution(_limit_versions(state, {name: GONE}))


def _check_solution(state: State) -> State:
    """The state, without its solution where that is none of its sets."""
    versions = state.solution.versions if state.solution else {}
    inside = all(
        admits(specifier, versions[name]) if name in versions else name not in state.kept
        for name, specifier in state.demands.specifiers.items()
    )
    return state if inside else state._replace(solution=None)


def includes(wide: Demands, demands: Demands) -> bool:
    """Whether all sets that satisfy ``demands`` satisfy the wide ones, so that what refuses these refuses those."""
    held = demands.specifiers
    return wide.torch_backend == demands.torch_backend and all(
        name in held and (specifiers(held[name]).is_subset(specifiers(limit)) if limit else not held[name])
        for name, limit in wide.specifiers.items()
    )
