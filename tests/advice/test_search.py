"""What a search costs on stacks as people have them, and what it says where there is no way."""

from __future__ import annotations

import pytest

from compatcheck.advice.model import Demands, Solution, Unsolvable, Violation
from compatcheck.advice.search import Conflict, Found, distance, explain
from compatcheck.advice.search._cost import GONE, LEAVING, admits, nearest, outside, specifiers
from tests.advice import searching
from tests.advice.universe import Entry, Releases, Resolver, Universe, violations

MINORS = range(3, 8)
TORCH: Releases = {f"2.{minor}.{patch}": {} for minor in MINORS for patch in (0, 1)}
VISION: Releases = {
    f"0.{minor + 15}.{patch}": {"torch": f"==2.{minor}.{patch}"} for minor in MINORS for patch in (0, 1)
}
TRANSFORMERS: Releases = {
    **{f"4.{minor}.{patch}": {"numpy": ">=1.20"} for minor in range(40, 58) for patch in (0, 1)},
    **{f"5.{minor}.0": {"numpy": ">=1.20", "torch": ">=2.5"} for minor in (0, 1)},
}
PEFT: Releases = {f"0.{minor}.0": {"torch": ">=2.3", "transformers": ""} for minor in range(8, 19)}
NUMPY: Releases = {"1.24.4": {}, "1.26.4": {}, "2.0.2": {}, "2.3.0": {}}
INDEX = {"torch": TORCH, "torchvision": VISION, "transformers": TRANSFORMERS, "peft": PEFT, "numpy": NUMPY}
HAD = {"torch": "2.5.0+cu118", "torchvision": "0.20.0", "transformers": "4.48.0", "peft": "0.14.0", "numpy": "2.0.2"}

MASKED = Entry("CC-2024-0001", ({"torch": ">=2.5.0,<2.5.1"},), ({"torch": ">=2.5.1"},))
LOADING = Entry(
    "CC-2026-0064", ({"transformers": ">=4.46,<4.49", "peft": "<0.15"},), ({"transformers": ">=4.49.0,<5.0.0"},)
)
ABI = Entry("CC-2026-0010", ({"numpy": ">=2.0", "transformers": "<5"},), ({"numpy": "<=1.26.4"},))


def run(universe: Universe) -> Found | Conflict:
    return searching.run(Resolver(universe), violations(universe), universe.preferred, universe.wanted)


@pytest.mark.parametrize(
    ("entries", "moved"),
    [
        ((), {}),
        ((MASKED,), {"torch": "2.5.1", "torchvision": "0.20.1"}),
        ((LOADING,), {"transformers": "4.49.1"}),
        ((ABI,), {"numpy": "1.26.4"}),
        ((MASKED, LOADING), {"torch": "2.5.1", "torchvision": "0.20.1", "transformers": "4.49.1"}),
        ((MASKED, ABI), {"torch": "2.5.1", "torchvision": "0.20.1", "numpy": "1.26.4"}),
        (
            (MASKED, LOADING, ABI),
            {"torch": "2.5.1", "torchvision": "0.20.1", "transformers": "5.1.0"},
        ),
    ],
)
def test_a_stack_is_mended_by_the_nearest_versions_with_few_resolutions(
    entries: tuple[Entry, ...], moved: dict[str, str]
) -> None:
    found = run(Universe(INDEX, dict.fromkeys(INDEX, ""), HAD, entries))
    assert isinstance(found, Found) and found.proven
    changed = {
        name: version for name, version in found.solution.versions.items() if distance(HAD, {name: version}, HAD)
    }
    assert changed == moved
    assert found.resolutions <= max(4 * len(entries), 1)
    clearing = {name for ids in found.entries_by_name.values() for name in ids}
    assert clearing == {entry.id for entry in entries}
    assert found.entries_by_name.keys() <= moved.keys()


def test_what_only_others_ask_for_is_moved_where_that_is_nearest() -> None:
    had = {name: version for name, version in HAD.items() if name != "torchvision"}
    found = run(Universe(INDEX, {"peft": ""}, had, (MASKED,)))
    assert isinstance(found, Found) and found.proven
    assert found.solution.versions["torch"] == "2.5.1"
    assert found.resolutions == 2


def test_what_must_leave_leaves_only_where_nothing_else_helps() -> None:
    index: dict[str, Releases] = {"peft": {"0.14.0": {"torch": ""}, "0.8.0": {}}, "torch": {"2.5.0": {}}}
    found = run(Universe(index, {"peft": ""}, {"peft": "0.14.0", "torch": "2.5.0"}, (MASKED,)))
    assert isinstance(found, Found)
    assert found.solution.versions == {"peft": "0.8.0"}


def test_what_is_left_to_the_user_costs_what_it_is_said_to() -> None:
    universe = Universe(INDEX, dict.fromkeys(INDEX, ""), HAD, (MASKED._replace(settable=True), ABI))
    for price, torch in ((50, "2.5.1"), (1, "2.5.0")):
        resolver = Resolver(universe)
        found = searching.run(resolver, violations(universe), HAD, HAD, by_hand_cost=price)
        assert isinstance(found, Found) and found.proven
        assert found.solution.versions["torch"] == torch
        assert found.demands.by_hand == ((MASKED.id,) if price == 1 else ())


def test_among_equals_fewer_major_steps_are_nearer() -> None:
    had = {"torch": "2.0", "numpy": "1.0", "peft": "0.1"}
    ways = (Demands({"torch": ">=3"}), Demands({"numpy": ">=1.5", "peft": ">=0.6"}))

    def judge(solution: Solution, demands: Demands) -> list[Violation]:
        moved = {name for name, old in had.items() if solution.versions[name] != old}
        return [] if "torch" in moved or {"numpy", "peft"} <= moved else [Violation("CC-1", "t", ways)]

    index: dict[str, Releases] = {"torch": {"2.0": {}, "3.0": {}}, "numpy": {"1.0": {}, "1.5": {}}}
    universe = Universe({**index, "peft": {"0.1": {}, "0.6": {}}}, dict.fromkeys(had, ""), had)
    found = searching.run(Resolver(universe), judge, had, had)
    assert isinstance(found, Found) and found.solution.versions == {"torch": "2.0", "numpy": "1.5", "peft": "0.6"}


def test_another_build_of_torch_is_taken_for_its_price() -> None:
    def judge(solution: Solution, demands: Demands) -> list[Violation]:
        ways = (Demands({"torch": "<2.5.0"}), Demands({}, "cu126"))
        return [] if demands.torch_backend else [Violation("CC-1", "t", ways)]

    resolver = Resolver(Universe(INDEX, {"torch": ""}, HAD))
    found = searching.run(resolver, judge, {"torch": HAD["torch"]}, {"torch"})
    assert isinstance(found, Found) and found.proven
    assert found.demands.torch_backend == "cu126" and found.entries_by_name == {"torch": ("CC-1",)}
    assert found.solution.versions == {"torch": "2.5.0"}
    assert found.resolutions == 2


def test_what_no_version_clears_is_told_and_moves_nothing() -> None:
    left = Violation("CC-2024-0046", "a model's own fault", ())
    resolver = Resolver(Universe(INDEX, {"torch": ""}, {"torch": "2.5.0"}))
    found = searching.run(resolver, lambda *_: [left], {"torch": "2.5.0"}, {"torch"})
    assert isinstance(found, Found)
    assert found.left == (left,) and found.proven and found.resolutions == 1


def test_a_conflict_names_entries_and_requirements_once() -> None:
    wanted = {"torch": "<2.5.1", "peft": ">=0.14"}
    old_peft = Entry("CC-2026-0099", ({"torch": "<2.5", "peft": ">=0.10"},))
    conflict = run(Universe(INDEX, wanted, HAD, (MASKED, old_peft)))
    assert isinstance(conflict, Conflict)
    told = explain(conflict).splitlines()
    assert told[:2] == [
        "CC-2024-0001 (t) cannot be fixed; that would require torch>=2.5.1 or torch<2.5.0",
        "CC-2026-0099 (t) cannot be fixed; that would require torch>=2.5 or peft<0.10",
    ]
    assert set(told[2:]) == {
        "  nothing satisfies {'torch': '>=2.5.1'}",
        "  nothing satisfies {'peft': '<0.10'}",
    }


def test_a_remedy_that_does_not_help_is_no_endless_search() -> None:
    stubborn = Violation("CC-1", "t", (Demands({"torch": ">=2.5.1"}),))

    def judge(solution: Solution, demands: Demands) -> list[Violation]:
        moved = solution.versions["torch"] != "2.5.0"
        return [stubborn._replace(ways=())] if moved else [stubborn]

    resolver = Resolver(Universe(INDEX, {"torch": ""}, {"torch": "2.5.0"}))
    conflict = searching.run(resolver, judge, {"torch": "2.5.0"}, {"torch"}, {"torch": TORCH})
    assert isinstance(conflict, Conflict)
    assert "CC-1 (t) cannot be fixed; that would require torch>=2.5.1" in explain(conflict)


def test_requirements_that_contradict_each_other_are_the_resolvers_to_tell() -> None:
    with pytest.raises(Unsolvable, match="nothing satisfies"):
        run(Universe(INDEX, {"torch": "<2.3"}, HAD))


def test_a_name_that_was_to_be_installed_is_there() -> None:
    absent = Violation("CC-1", "t", (Demands({"numpy": ""}),))

    def judge(solution: Solution, demands: Demands) -> list[Violation]:
        return [] if "numpy" in solution.versions else [absent]

    found = searching.run(Resolver(Universe(INDEX, {"torch": ""})), judge, {}, {"torch"})
    assert isinstance(found, Found)
    assert found.solution.versions == {"torch": "2.7.1", "numpy": "2.3.0"}


@pytest.mark.parametrize(
    ("old", "new", "price"),
    [
        ("2.5.0", "2.5.0+cu118", 0),
        ("2.5", "2.5.0", 0),
        ("2.5.0", "2.5.1", 1),
        ("2.5.0", "2.5.0.post1", 1),
        ("2.5.0rc1", "2.5.0", 1),
        ("4.48.0", "4.57.6", 90),
        ("4.48.0", "4.45.0", 30),
        ("5.2.0", "4.57.6", 100),
        ("1.0", "1!1.0", 1000),
        ("made-here", "1.0", 0),
    ],
)
def test_a_move_costs_what_it_changes(old: str, new: str, price: int) -> None:
    assert distance({"x": old}, {"x": new}, {"x"}) == price
    assert distance({"x": old}, {"x": new}, ()) == distance({"x": old}, {}, {"x"}) == 0


def test_what_demands_cost_at_least() -> None:
    scale = searching.scale({"torch": "2.4.0", "peft": "0.14.0"}, {"torch"}, by_hand_cost=7)
    assert scale.least(Demands({"torch": ">=2.5.1"})) == 10
    assert scale.least(Demands({"torch": ">=2.5.1", "peft": "<0.14"})) == 20
    assert scale.least(Demands({"peft": ">=5"})) == scale.least(Demands({"peft": GONE})) == LEAVING
    assert scale.least(Demands(by_hand=("CC-1",))) == 7


@pytest.mark.parametrize("text", ["==2.5.0", ">=2.5.1,<2.6", "==2.5.*", "!=2.5.*", "<=1.26.4", "~=2.2", "!=1.1"])
def test_every_version_is_either_inside_or_outside(text: str) -> None:
    versions = ["1.1", "1.26.4", "1.26.4.post1", "2.1", "2.2", "2.4.9", "2.5.0", "2.5.0.post1", "2.5.1", "2.6", "3.0"]
    for version in versions:
        assert admits(text, version) != any(admits(side, version) for side in outside(text)), version


@pytest.mark.parametrize(
    ("old", "limit", "expected"),
    [
        ("2.5.0", "", "==2.5.0"),
        ("2.5.0+cu118", ">=2.5.1", "==2.5.*,>=2.5.1"),
        ("4.41.2", ">=4.43", "<4.44,>=4.43"),
        ("4.48.0", ">=5", "<6,>=5"),
        ("made-here", ">=2", ""),
    ],
)
def test_the_nearest_versions_within_a_limit(old: str, limit: str, expected: str) -> None:
    assert specifiers(nearest(old, limit)) == specifiers(expected)
