"""What every answer has to satisfy, and the cheapest demands that do."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import cache
from typing import NamedTuple

from compatcheck.advice.model import Demands
from compatcheck.advice.search._cost import (
    BACKEND,
    GONE,
    LEAVING,
    PRESENT,
    cheapest,
    cost,
    intersect,
    is_major,
    nearest,
    specifiers,
)

_MOST_LOOKED_AT = 20_000


class Clause(NamedTuple):
    """At least one of ``ways`` has to be taken, by every answer for ``given``: that build of torch, those installed.

    It comes from the finding ``id``, or from the resolver, whose words are ``why``. ``held`` are the distributions that
    the resolver was asked to keep near where they are, which nothing demands; ``at`` are the versions of a solution
    that broke it, None where that was only foreseen. ``stuck`` are those refused at the version that they had.
    """

    ways: tuple[Demands, ...]
    id: str = ""
    title: str = ""
    why: str = ""
    given: Demands | None = None
    held: frozenset[str] = frozenset()
    at: Mapping[str, str] | None = None
    stuck: frozenset[str] = frozenset()

    @property
    def names(self) -> set[str]:
        return {name for way in self.ways for name in way.specifiers}

    def applies(self, demands: Demands) -> bool:
        given = self.given
        return given is None or (
            given.torch_backend == demands.torch_backend and given.specifiers.keys() <= demands.specifiers.keys()
        )

    def is_satisfied(self, demands: Demands) -> bool:
        return not self.applies(demands) or any(is_taken(way, demands) for way in self.ways)


class Scale(NamedTuple):
    """What demands cost.

    ``preferred`` are the versions that count, ``first`` the others of the first solution: among equals the one nearest
    to these is taken. ``asked`` are the distributions that cannot leave, ``present`` those whose leaving costs.
    ``releases`` are known versions of a distribution, the oldest first; what lies above them is not known.
    """

    start: Demands
    preferred: Mapping[str, str]
    by_hand_cost: Callable[[str], int]
    asked: Set[str] = frozenset()
    present: Set[str] = frozenset()
    first: Mapping[str, str] = {}
    releases: Callable[[str], Sequence[str]] = lambda name: ()

    def least(self, demands: Demands) -> int:
        """What every answer to the demands costs at least."""
        return sum(self._least_of(*each) for each in demands.specifiers.items()) + self._around(demands)

    def price(self, versions: Mapping[str, str], demands: Demands) -> int:
        """What this answer to the demands costs."""
        moved = (cost(old, versions[name]) for name, old in self.preferred.items() if name in versions)
        left = LEAVING * len(self.preferred.keys() & self.present - versions.keys())
        return sum(moved) + left + self._around(demands)

    def rank(self, demands: Demands) -> tuple[int, int, int, int, int]:
        """The cheapest first; then without what must leave, with few major steps, few moves, and near to the first."""
        limits = demands.specifiers
        prices = [self._least_of(name, limit) for name, limit in limits.items() if name in self.preferred]
        drift = sum(cheapest(self.first[name], limits[name]) or 0 for name in limits.keys() & self.first.keys())
        gone = sum(limit == GONE for limit in limits.values())
        return sum(prices) + self._around(demands), gone, sum(map(is_major, prices)), sum(map(bool, prices)), drift

    def hold(self, demands: Demands, loose: Collection[str] = ()) -> Demands:
        """The demands with all that counts held where it is, or as near to that as they allow, but for ``loose``."""
        held = dict(demands.specifiers)
        for name in self.preferred.keys() & (self.asked | self.present) - set(loose):
            if held.get(name) != GONE and (close := nearest(self.preferred[name], held.get(name, ""))):
                held[name] = close
        return demands._replace(specifiers=held)

    def add(self, demands: Demands, way: Demands) -> Demands | None:
        """The demands with those of the way; None where they contradict each other.

        The build of torch is changed once at most, from that of the start.
        """
        merged = dict(demands.specifiers)
        for name, limit in way.specifiers.items():
            clauses = (*merged.get(name, "").split(","), limit)
            merged[name] = intersect(merged.get(name, ""), limit)
            if merged[name] == GONE and (name in self.asked or PRESENT in clauses):
                return None
        backend = way.torch_backend or demands.torch_backend
        if backend != demands.torch_backend != self.start.torch_backend:
            return None
        return Demands(merged, backend, tuple(sorted({*demands.by_hand, *way.by_hand})))

    def _least_of(self, name: str, limit: str) -> int:
        if name not in self.preferred:
            return 0
        leaving = LEAVING if name in self.present else 0
        least = None if limit == GONE else cheapest(self.preferred[name], limit)
        if least is None or name not in self.asked:
            return leaving if least is None else min(least, leaving)
        return least

    def _around(self, demands: Demands) -> int:
        """What the demands cost besides versions: another build of torch, and changes by hand."""
        built = BACKEND if demands.torch_backend != self.start.torch_backend else 0
        return built + sum(map(self.by_hand_cost, set(demands.by_hand) - set(self.start.by_hand)))


def choose(clauses: Sequence[Clause], scale: Scale) -> Demands | None:
    """The cheapest demands that satisfy every clause; None where none do."""
    queue: list[tuple[tuple[int, ...], tuple[int, ...], Demands]] = [(scale.rank(scale.start), (), scale.start)]
    seen: set[tuple[object, ...]] = set()
    for _ in range(_MOST_LOOKED_AT):
        if not queue:
            return None
        _, path, demands = heapq.heappop(queue)
        clause = next((each for each in clauses if not each.is_satisfied(demands)), None)
        if clause is None:
            return demands
        for number, way in enumerate(clause.ways):
            further = scale.add(demands, way)
            if further is not None and (key := _key(further)) not in seen:
                seen.add(key)
                heapq.heappush(queue, (scale.rank(further), (*path, number), further))
    return None


def is_taken(way: Demands, demands: Demands) -> bool:
    """Whether every answer to the demands takes this way."""
    limits = demands.specifiers
    return (
        way.torch_backend in (None, demands.torch_backend)
        and set(way.by_hand) <= set(demands.by_hand)
        and all(name in limits and _implies(limits[name], limit) for name, limit in way.specifiers.items())
    )


def spell(ways: Iterable[Demands]) -> str:
    """The ways as a person writes them."""
    return " or ".join(dict.fromkeys(filter(None, map(_spell, ways))))


def _spell(demands: Demands) -> str:
    named = [_spell_limit(name, limit) for name, limit in demands.specifiers.items()]
    named += [f"torch built for {demands.torch_backend}"] if demands.torch_backend else []
    return " with ".join(named + (["a manual change"] if demands.by_hand else []))


def _spell_limit(name: str, limit: str) -> str:
    return f"no {name}" if limit == GONE else name + limit if limit else f"{name} installed"


def _key(demands: Demands) -> tuple[object, ...]:
    return frozenset(demands.specifiers.items()), demands.torch_backend, demands.by_hand


@cache
def _implies(limit: str, wider: str) -> bool:
    if limit == GONE:
        return wider != PRESENT
    return not wider or (bool(limit) and specifiers(limit).is_subset(specifiers(wider)))
