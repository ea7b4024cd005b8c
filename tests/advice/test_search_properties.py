"""The search against brute force, in universes small enough for both."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.advice.model import Demands, Unsolvable
from compatcheck.advice.search import Conflict, distance, explain, search
from compatcheck.advice.search._cost import admits
from compatcheck.advice.search._state import Scale, State
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
    "1!1.0",
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
    return distance(universe.preferred, versions, versions) + by_hand_cost * len(broken)


def possible(universe: Universe) -> bool:
    return next(solutions(universe), None) is not None


def best(universe: Universe, by_hand_cost: int, versions: Mapping[str, str] | None = None) -> int | None:
    """The price of the nearest clean set, None where there is none.

    Of ``versions`` that hold all that the resolver's first set holds, only sets of which that is so can be better.
    """
    first = next(solutions(universe)).keys()
    held = first if versions is not None and first <= versions.keys() else set()
    every = (price(universe, each, by_hand_cost) for each in solutions(universe) if held <= each.keys())
    return min((value for value in every if value is not None), default=None)


@settings(max_examples=200, deadline=None)
@given(universes(), st.sampled_from((0, 7, 50)))
def test_what_is_found_is_clean_and_as_near_as_the_best_of_all(universe: Universe, by_hand_cost: int) -> None:
    resolver = Resolver(universe)
    try:
        judge, preferred = violations(universe), universe.preferred
        found = search(resolver, judge, Demands(), preferred, NAMES, by_hand_cost=by_hand_cost)
    except Unsolvable:
        assert not possible(universe)
        return
    assert found.resolutions == len(resolver.asked)
    if isinstance(found, Conflict):
        assert best(universe, by_hand_cost) is None
        assert {attempt.id for attempt in found.attempts} <= {entry.id for entry in universe.entries}
        assert explain(found)
        return
    assert found.proven and not found.left
    assert {entry.id for entry in universe.entries if finding(entry, found.solution.versions).ranges} <= set(
        found.demands.by_hand
    )
    versions = found.solution.versions
    assert price(universe, versions, by_hand_cost) == best(universe, by_hand_cost, versions)


@settings(max_examples=50, deadline=None)
@given(universes(), st.integers(0, 12))
def test_whenever_time_runs_out_what_is_told_holds(universe: Universe, steps: int) -> None:
    if not possible(universe):
        return
    clock, judge = count(), violations(universe)
    found = search(
        Resolver(universe),
        judge,
        Demands(),
        universe.preferred,
        NAMES,
        lambda: next(clock) >= steps,
        by_hand_cost=50,
    )
    if isinstance(found, Conflict):
        assert best(universe, 50) is None
        return
    broken = {violation.id for violation in judge(found.solution, found.demands)}
    assert {violation.id for violation in found.left} == broken
    assert not (broken and found.proven)
    if found.proven:
        assert price(universe, found.solution.versions, 50) == best(universe, 50, found.solution.versions)


def satisfies(versions: Mapping[str, str], demands: Demands) -> bool:
    return all(admits(limit, versions[name]) for name, limit in demands.specifiers.items() if name in versions)


@settings(max_examples=150, deadline=None)
@given(universes(), st.dictionaries(st.sampled_from(NAMES), LIMITS.filter(bool), max_size=2))
def test_no_set_costs_less_than_its_state_or_is_left_out_of_the_search_for_a_nearer_one(
    universe: Universe, limits: dict[str, str]
) -> None:
    scale, state = Scale(universe.preferred, Demands(), 0), State(Demands(limits), frozenset(universe.wanted))
    for versions in solutions(universe):
        if satisfies(versions, state.demands):
            worth = distance(universe.preferred, versions, NAMES)
            assert scale.least(state) <= worth
            tight = scale.tighten(state, worth + 1)
            assert tight is not None and satisfies(versions, tight)
