"""The search against brute force, in universes small enough for both."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.advice.model import Unsolvable
from compatcheck.advice.search import Conflict, distance, explain
from tests.advice.searching import run
from tests.advice.universe import Entry, Releases, Resolver, Universe, finding, solutions, violations

NAMES = ("torch", "torchvision", "transformers", "peft", "numpy")
VERSIONS = (
    "1.0",
    "1.0.post1",
    "1.0.1",
    "1.1",
    "1.1.2+cpu",
    "1.2",
    "1.14",
    "2.0",
    "2.0.1",
    "2.3",
    "3.0",
    "5.1",
)
LIMITS = st.sampled_from(
    (
        "",
        "",
        "",
        "",
        "<2",
        ">=1.1",
        "==1.*",
        "!=1.1",
        ">=2",
        "<1.1",
        "==1.1",
        "<=1.0",
        ">1.0",
        ">=1.0.1,<2.3",
        "!=1.0.*",
    )
)
RANGES = st.sampled_from(
    (
        "<2.0",
        ">=1.1",
        "==1.1",
        ">=1.0,<1.1",
        "<=1.0",
        ">=2.0rc1",
        ">1.0",
        "<1.1.dev0",
        ">=1.0.1,<2.3",
        ">=2.0",
        "==2.0.1",
    )
)


def releases(names: tuple[str, ...]) -> st.SearchStrategy[Releases]:
    needs = st.dictionaries(st.sampled_from(names), LIMITS, max_size=2)
    return st.dictionaries(st.sampled_from(VERSIONS), needs, min_size=3, max_size=6)


@st.composite
def universes(draw: st.DrawFn) -> Universe:
    names = NAMES[: draw(st.integers(2, 4))]
    index = {name: draw(releases(names)) for name in names}
    wanted = {name: draw(LIMITS) for name in names if draw(st.integers(0, 2))} or {names[0]: ""}
    preferred = {name: draw(st.sampled_from(sorted(index[name]))) for name in names if draw(st.integers(0, 3))}
    tables = st.dictionaries(st.sampled_from(names), RANGES, min_size=1, max_size=2)
    pins = st.dictionaries(st.sampled_from(names), LIMITS.filter(bool), min_size=1, max_size=2)
    entries = tuple(
        Entry(
            f"CC-{n}",
            tuple(draw(st.lists(tables, min_size=1, max_size=2))),
            tuple(draw(st.lists(pins, max_size=1))),
            settable=draw(st.integers(0, 4)) == 0,
        )
        for n in range(draw(st.integers(0, 4)))
    )
    return Universe(index, wanted, preferred, entries)


def price(universe: Universe, versions: Mapping[str, str], by_hand_cost: int) -> int | None:
    """What a set of versions costs with the settings that clear what it breaks; None where none does."""
    broken = [entry for entry in universe.entries if finding(entry, versions).ranges]
    if not all(entry.settable for entry in broken):
        return None
    return distance(preferred(universe), versions, versions) + by_hand_cost * len(broken)


def preferred(universe: Universe) -> dict[str, str]:
    """What is preferred of the names that are asked for."""
    return {name: version for name, version in universe.preferred.items() if name in universe.wanted}


def possible(universe: Universe) -> bool:
    return next(solutions(universe), None) is not None


def best(universe: Universe, by_hand_cost: int) -> int | None:
    """The price of the nearest clean set, None where there is none."""
    every = (price(universe, each, by_hand_cost) for each in solutions(universe))
    return min((value for value in every if value is not None), default=None)


PATIENCE = 60
"""Resolutions after which a proof is given up; a few universes in a hundred need more."""


@settings(max_examples=100, deadline=None)
@given(universes(), st.sampled_from((0, 7, 50)))
def test_what_is_found_is_clean_and_as_near_as_the_best_of_all(universe: Universe, by_hand_cost: int) -> None:
    resolver = Resolver(universe)
    try:
        judge, had = violations(universe), preferred(universe)
        found = run(
            resolver, judge, had, universe.wanted, universe.packages, by_hand_cost=by_hand_cost, patience=PATIENCE
        )
    except Unsolvable:
        assert not possible(universe)
        return
    assert found.resolutions == len(resolver.asked)
    if isinstance(found, Conflict):
        assert best(universe, by_hand_cost) is None
        assert explain(found)
        return
    assert not found.left
    assert found.proven or found.resolutions > PATIENCE
    assert {entry.id for entry in universe.entries if finding(entry, found.solution.versions).ranges} <= set(
        found.demands.by_hand
    )
    versions = found.solution.versions
    if found.proven:
        assert price(universe, versions, by_hand_cost) == best(universe, by_hand_cost)


@settings(max_examples=50, deadline=None)
@given(universes(), st.integers(0, 12))
def test_whenever_time_runs_out_what_is_told_holds(universe: Universe, steps: int) -> None:
    if not possible(universe):
        return
    clock, judge = count(), violations(universe)
    resolver, had, wanted = Resolver(universe), preferred(universe), universe.wanted
    found = run(
        resolver,
        judge,
        had,
        wanted,
        universe.packages,
        lambda: next(clock) >= steps,
        by_hand_cost=50,
        patience=PATIENCE,
    )
    if isinstance(found, Conflict):
        assert best(universe, 50) is None
        return
    broken = {violation.id for violation in judge(found.solution, found.demands)}
    assert {violation.id for violation in found.left} == broken
    assert not (broken and found.proven)
    if found.proven:
        assert price(universe, found.solution.versions, 50) == best(universe, 50)
