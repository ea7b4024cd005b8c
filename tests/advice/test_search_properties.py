"""The search against brute force, in universes small enough for both."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, islice

from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.advice.model import Demands, Solution, Unsolvable
from compatcheck.advice.search import Conflict, Found, distance, explain, search
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


def everything(solution: Solution) -> list[str]:
    return list(solution.versions)


def possible(universe: Universe) -> bool:
    return next(solutions(universe), None) is not None


@settings(max_examples=150, deadline=None)
@given(universes(), st.sampled_from((0, 7, 50)))
def test_what_is_found_is_clean_and_as_near_as_the_best_of_all(universe: Universe, by_hand_cost: int) -> None:
    resolver = Resolver(universe)
    prices = {frozenset(versions.items()): price(universe, versions, by_hand_cost) for versions in solutions(universe)}
    clean = [value for value in prices.values() if value is not None]
    try:
        found = search(
            resolver,
            violations(universe),
            Demands(),
            universe.preferred,
            everything,
            essential=universe.wanted,
            by_hand_cost=by_hand_cost,
        )
    except Unsolvable:
        assert not prices
        return
    assert found.resolutions == len(resolver.asked)
    if isinstance(found, Conflict):
        assert not clean
        assert {attempt.id for attempt in found.attempts} <= {entry.id for entry in universe.entries}
        assert explain(found)
        return
    assert found.proven and not found.left
    assert {entry.id for entry in universe.entries if finding(entry, found.solution.versions).ranges} <= set(
        found.demands.by_hand
    )
    assert prices[frozenset(found.solution.versions.items())] == min(clean)


@settings(max_examples=40, deadline=None)
@given(universes())
def test_without_a_word_on_what_must_stay_a_clean_set_is_found_whenever_there_is_one(universe: Universe) -> None:
    if not possible(universe):
        return
    found = search(Resolver(universe), violations(universe), Demands(), universe.preferred, everything)
    assert isinstance(found, Found) == any(price(universe, versions, 0) is not None for versions in solutions(universe))


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
        everything,
        lambda: next(clock) >= steps,
        essential=universe.wanted,
        by_hand_cost=50,
    )
    prices = [price(universe, versions, 50) for versions in solutions(universe)]
    clean = [value for value in prices if value is not None]
    if isinstance(found, Conflict):
        assert not clean
        return
    broken = {violation.id for violation in judge(found.solution, found.demands)}
    assert {violation.id for violation in found.left} == broken
    assert not (broken and found.proven)
    if found.proven:
        assert price(universe, found.solution.versions, 50) == min(clean)


def satisfies(versions: Mapping[str, str], demands: Demands) -> bool:
    return all(admits(limit, versions[name]) for name, limit in demands.specifiers.items() if name in versions)


@settings(max_examples=150, deadline=None)
@given(
    universes(), st.dictionaries(st.sampled_from(NAMES), LIMITS.filter(bool), max_size=2), st.sampled_from((0, 7, 50))
)
def test_no_clean_set_costs_less_than_its_state_or_is_left_out_of_the_search_for_a_nearer_one(
    universe: Universe, limits: dict[str, str], by_hand_cost: int
) -> None:
    judge = violations(universe)
    seen = [entry for v in islice(solutions(universe), 3) for entry in judge(Solution(v), Demands()) if entry.ways]
    scale = Scale(universe.preferred, Demands(), by_hand_cost, tuple(seen))
    state = State(Demands(limits), frozenset(universe.wanted))
    for versions in solutions(universe):
        worth = price(universe, versions, by_hand_cost)
        if worth is not None and satisfies(versions, state.demands):
            assert scale.least(state) <= worth
            if price(universe._replace(entries=unsettable(universe)), versions, 0) is not None:
                tight = scale.tightened(state, worth + 1)
                assert tight is not None and satisfies(versions, tight)


def unsettable(universe: Universe) -> tuple[Entry, ...]:
    return tuple(entry._replace(settable=False) for entry in universe.entries)
