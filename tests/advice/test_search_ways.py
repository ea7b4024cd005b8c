"""From findings to demands, and what a move costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from compatcheck.advice.search import ways
from compatcheck.packages.versions import contains, parse_range, parse_version
from compatcheck.results.findings import Finding, Remedy


def spelled(
    versions: dict[str, str],
    *tables: dict[str, str],
    pins: tuple[dict[str, str], ...] = (),
    packages: tuple[str, ...] = (),
) -> list[dict[str, str]]:
    remedies = tuple(Remedy("pins", "", each) for each in pins)
    finding = Finding("CC-1", "t", "affected", "hang", "reported", packages, "s", (), remedies, (), ranges=tables)
    return [dict(way.specifiers) for way in ways(finding, versions)]


HAD = {"torch": "2.5.0+cu118", "peft": "0.14.0"}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"torch": ">=2.5.0,<2.5.1"}, [{"torch": ">=2.5.1"}, {"torch": "<2.5.0"}]),
        ({"torch": "==2.5.0"}, [{"torch": ">=2.5.0.post0"}, {"torch": "<2.5.0"}]),
        ({"torch": "<=2.5.0"}, [{"torch": ">=2.5.0.post0"}]),
        ({"torch": ">2.4.1"}, [{"torch": "<=2.4.1"}]),
        ({"torch": "<=2.7.4.post1"}, [{"torch": ">2.7.4.post1"}]),
        ({"torch": ">=2.5.0a0,<2.6.0rc1"}, [{"torch": ">=2.6.0"}, {"torch": "<2.5.0"}]),
        ({"torch": ">=2.5", "peft": "<0.15", "trl": "absent"}, [{"torch": "<2.5"}, {"peft": ">=0.15"}]),
        ({"torch": ">=2.5", "trl": "<1"}, [{"torch": "<2.5"}]),
        ({"torch": "present"}, []),
    ],
)
def test_the_complement_of_what_an_entry_speaks_of(table: dict[str, str], expected: list[dict[str, str]]) -> None:
    assert spelled(HAD, table) == expected


def test_the_advised_come_first_and_are_not_said_twice() -> None:
    table = {"torch": ">=2.4,<2.6"}
    assert spelled(HAD, table, pins=({"torch": ">=2.6"},)) == [{"torch": ">=2.6"}, {"torch": "<2.4"}]
    assert spelled(HAD, table, pins=({"Torch": ">=2.6,<2.8"}, {"torch": ">=2.5"})) == [
        {"torch": ">=2.6,<2.8"},
        {"torch": ">=2.8"},
        {"torch": "<2.4"},
    ]


def test_a_remedy_for_what_is_not_there_is_for_another_environment_unless_it_brings_it() -> None:
    assert spelled(HAD, pins=({"trl": ">=0.23"}, {"tiktoken": ""})) == [{"tiktoken": ""}]


def test_one_table_is_enough_and_one_without_versions_outlives_them_all() -> None:
    assert spelled(HAD, {"torch": ">=2.5"}, {"peft": "<1"}) == [{"torch": "<2.5"}]
    assert spelled(HAD, {"torch": ">=2.5"}, {}) == []


def test_a_relation_of_two_is_cleared_by_moving_either() -> None:
    assert spelled(HAD, {"torch": "present"}, packages=("Torch", "peft", "nvidia-driver")) == [
        {"torch": ">=2.5.0.post0"},
        {"torch": "<2.5.0"},
        {"peft": ">=0.14.0.post0"},
        {"peft": "<0.14.0"},
    ]
    assert spelled(HAD, {"torch": "present"}, packages=("torch", "nvidia-driver")) == []


VERSIONS = ("2.4", "2.4.1", "2.5.0", "2.5.0.post1", "2.5.1+cu118", "2.6", "2.6.post2", "3.0", "1!1.0")
BOUNDS = ("2.4.1", "2.5.0", "2.5.0.post1", "2.5.0rc1", "2.6.dev0", "3.0")


@given(
    st.lists(st.tuples(st.sampled_from((">=", "<=", "==", "<", ">")), st.sampled_from(BOUNDS)), min_size=1, max_size=2),
    st.lists(st.sampled_from((">=2.5.0", "<=2.4.1", "<3", ">2.5.0", "==2.5.0", ">=2.4,!=2.6.*", "==2.*")), max_size=2),
    st.sampled_from(VERSIONS),
)
def test_the_ways_hold_every_release_that_the_entry_does_not(
    comparisons: list[tuple[str, str]], advised: list[str], version: str
) -> None:
    table = ",".join(operator + bound for operator, bound in comparisons)

    def affected(text: str) -> bool:
        parsed = parse_version(text)
        return parsed is not None and contains(parse_range(table), parsed)

    if affected(version):
        found = spelled({"torch": version}, {"torch": table}, pins=tuple({"torch": text} for text in advised))
        for other in VERSIONS:
            allowed = any(SpecifierSet(way["torch"]).contains(other, prereleases=False) for way in found)
            assert allowed or affected(other)
            if not advised:
                assert allowed is not affected(other)
        assert not any(SpecifierSet(way["torch"]).contains(version) for way in found)
        assert not any(SpecifierSet(way["torch"]).prereleases or "+" in way["torch"] for way in found)
