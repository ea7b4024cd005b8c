"""A range asked for against a range known to be bad."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.matching.match import TraitVerdict, Verdict, match_table
from compatcheck.matrix.matching.requested_ranges import compare
from compatcheck.packages.versions import contains, parse_range

UNIVERSE = [
    f"{major}.{minor}.{patch}{post}"
    for major in (0, 1, 2)
    for minor in range(4)
    for patch in range(4)
    for post in ("", ".post1")
]
RELEASES = [version for version in UNIVERSE if "post" not in version]
bounds = st.sampled_from([*UNIVERSE, "0", "1", "2", "1.0", "1.2", "2.3", "1.1.0.post1"])
clauses = st.one_of(
    st.builds("{}{}".format, st.sampled_from([">=", "<=", ">", "<", "==", "!="]), bounds),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), st.sampled_from(["1", "1.2", "1.2.1", "0.3"])),
    st.builds("~={}".format, st.sampled_from(["1.2", "1.2.1", "0.3.0", "1.0.0"])),
)
asked_ranges = st.lists(clauses, max_size=4).map(",".join)
bad_ranges = st.lists(
    st.builds("{}{}".format, st.sampled_from([">=", "<=", ">", "<", "=="]), bounds), min_size=1, max_size=2
).map(",".join)


def brute_force(asked: str, bad: str, universe: list[str]) -> bool | None:
    """What every version of a small universe says; None also where no version is asked for."""
    taken = [Version(each) for each in universe if SpecifierSet(asked).contains(each)]
    verdicts = {contains(parse_range(bad), version) for version in taken}
    return verdicts.pop() if len(verdicts) == 1 else None


@given(asked_ranges, bad_ranges)
def test_all_and_none_are_never_claimed_against_a_version_that_exists(asked: str, bad: str) -> None:
    holds = compare(asked, bad).holds
    taken = [Version(each) for each in RELEASES if SpecifierSet(asked).contains(each)]
    if holds is True:
        post = [Version(each) for each in UNIVERSE if SpecifierSet(asked).contains(each)]
        assert all(contains(parse_range(bad), version) for version in post)
    elif holds is False:
        assert not any(contains(parse_range(bad), version) for version in taken)


PLAIN = st.sampled_from([version for version in RELEASES[1:] if not version.startswith("2.3")])


@settings(deadline=None)
@given(
    st.lists(st.builds("{}{}".format, st.sampled_from([">=", "<"]), PLAIN), min_size=2, max_size=3).map(",".join),
    st.lists(st.builds("{}{}".format, st.sampled_from([">=", "<"]), PLAIN), min_size=1, max_size=2).map(",".join),
)
def test_for_half_open_ranges_the_answer_is_that_of_every_version(asked: str, bad: str) -> None:
    dense = [f"{major}.{minor}.{patch}" for major in range(6) for minor in range(8) for patch in range(8)]
    if any(contains(parse_range(bad), Version(each)) for each in dense):
        assert compare(asked, bad).holds is brute_force(asked, bad, dense)


@pytest.mark.parametrize(
    ("asked", "bad", "holds", "telling"),
    [
        (">=2.5,<2.5.1", ">=2.5.0,<2.5.1", True, False),
        ("==2.5.*", ">=2.5.0,<2.6", True, False),
        ("~=2.5.0", ">=2.5.0,<2.6", True, False),
        (">=2.4,<2.6,!=2.5.*", ">=2.4,<2.5", True, False),
        ("<=2.7.4.post1", "<2.8", True, False),
        (">=2.6", ">=2.5.0,<2.5.1", False, False),
        (">=2.4,<2.6,!=2.5.0", ">=2.5.0,<2.5.1", False, False),
        (">=2.4,<2.6,!=2.5.*", ">=2.5.0,<2.5.1", False, False),
        (">=2.4,<2.6", ">=2.5.0,<2.5.1", None, True),
        ("~=2.7.0", "==2.7.4.post1", None, True),
        ("==2.7.4", "==2.7.4.post1", False, False),
        (">=4.40,<5", ">=4.42.0,<4.45.0", None, False),
        (">=4.40,<5", ">=4.50,<5.0", None, True),
        (">=2.0", ">=2.5.0,<2.5.1", None, False),
        (">=2.5.0", ">=2.5.0,<2.5.1", None, False),
        ("", ">=2.5.0,<2.5.1", None, False),
        ("<=2.5.1", ">=2.3.0,<2.5.1", None, False),
        ("<=2.5.1", ">=2.3.0,<=2.5.1", None, True),
        (">=3,<2", ">=2.5.0,<2.5.1", None, False),
        ("of course", ">=2.5.0,<2.5.1", None, False),
        (">=2.5,<2.6", ">=3,<2", None, False),
        (">=1!2.5,<1!2.6", ">=2.5,<2.6", False, False),
        ("===2.5.0+cu118", "==2.5.0", True, False),
    ],
)
def test_all_some_or_none_and_whether_to_tell(asked: str, bad: str, holds: bool | None, telling: bool) -> None:
    overlap = compare(asked, bad)
    assert (overlap.holds, overlap.telling) == (holds, telling)


def judged(conditions: dict[str, object], facts: dict[str, object]) -> Verdict:
    return match_table(conditions, Environment(facts), lambda name, environment: TraitVerdict(None, missing=(name,)))


def test_a_range_says_that_the_package_will_be_there() -> None:
    facts = {"distribution_ranges": {"peft": ""}}
    assert judged({"distributions.peft": "present"}, facts).holds is True
    assert judged({"distributions.peft": "absent"}, facts).holds is False


def test_a_version_that_is_known_counts_before_the_range() -> None:
    both = {"distributions": {"torch": "2.6.0"}, "distribution_ranges": {"torch": "==2.5.0"}}
    assert judged({"distributions.torch": "==2.5.0"}, both).holds is False
    complete = {"distributions": {}, "distributions_complete": True, "distribution_ranges": {"torch": "==2.5.0"}}
    assert judged({"distributions.torch": "==2.5.0"}, complete).holds is True, "it is to be installed"


def test_the_part_at_fault_is_told_with_the_facts_that_are_missing() -> None:
    conditions = {"distributions.torch": ">=2.5.0,<2.5.1", "training.attention": "sdpa"}
    verdict = judged(conditions, {"distribution_ranges": {"torch": ">=2.4,<2.6"}})
    assert (verdict.holds, verdict.narrowed) == (None, True)
    assert verdict.missing == ("distributions.torch", "training.attention")
    assert verdict.partly == {"distributions.torch": "may be >=2.4,<2.6; only >=2.5.0,<2.5.1 is affected"}


@pytest.mark.parametrize("asked", [">=2.0", "", ">=2.3,<3"])
def test_a_wide_range_alone_is_not_told(asked: str) -> None:
    conditions = {"distributions.torch": ">=2.5.0,<2.5.1", "training.attention": "sdpa"}
    known = {"distribution_ranges": {"torch": asked}, "training": {"attention": "sdpa"}}
    assert (judged(conditions, known).holds, judged(conditions, known).narrowed) == (None, False)


@given(asked_ranges, bad_ranges, st.sampled_from(RELEASES))
def test_learning_the_version_never_overturns_what_its_range_decided(asked: str, bad: str, version: str) -> None:
    if SpecifierSet(asked).contains(version):
        conditions = {"distributions.torch": bad}
        before = judged(conditions, {"distribution_ranges": {"torch": asked}}).holds
        after = judged(conditions, {"distributions": {"torch": version}}).holds
        assert before is None or after is before


RANGES = [">=2.4,<2.6", ">=0.14,<0.16", "==4.45.*", "~=4.43.0", ">=0.10", "", "<4.46", ">=4.40,<5", "not a range"]


@pytest.fixture(scope="module")
def unindexed(known: matrix.Matrix) -> matrix.Matrix:
    """The same matrix, of which every entry is read and judged."""
    places = [place for rows in known.guards.values() for row in rows for place in row[2:]] + known.unguarded
    return known._replace(guards={}, of_model=(), unguarded=[list(place) for place in sorted(set(map(tuple, places)))])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_index_leaves_out_nothing_that_a_range_speaks_of(
    known: matrix.Matrix, unindexed: matrix.Matrix, data: st.DataObject
) -> None:
    names = st.sampled_from(sorted(known.guards))
    ranges = data.draw(st.dictionaries(names, st.sampled_from(RANGES), min_size=1))
    versions = data.draw(st.dictionaries(names, st.sampled_from(["2.5.0", "4.43.0", "0.14.4", "0.11.1"])))
    environment = Environment({"distributions": versions, "distribution_ranges": ranges})
    assert matrix.judge(known, environment).findings == matrix.judge(unindexed, environment).findings


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_range_that_says_nothing_tells_no_more_than_no_range(known: matrix.Matrix, data: st.DataObject) -> None:
    """But for a pair of the two, whose newest releases do not go together: there the known version speaks."""
    name = data.draw(st.sampled_from(sorted(known.guards)))
    version = data.draw(st.sampled_from(["2.5.0", "4.43.0", "0.14.4"]))
    other = data.draw(st.sampled_from(sorted(set(known.guards) - {name})))
    bare = {"distributions": {other: version}}
    without = {finding.id: finding.status for finding in matrix.judge(known, Environment(bare)).findings}
    ranged = matrix.judge(known, Environment({**bare, "distribution_ranges": {name: ">=0"}})).findings
    pairs = {finding.id for finding in ranged if any({name, other} <= set(table) for table in finding.ranges)}
    told = {finding.id for finding in ranged if finding.status == "possible"}
    assert told - pairs <= set(without)
    assert all("<" not in finding.partly.get(f"distributions.{name}", "").partition("which")[2] for finding in ranged)


@pytest.mark.parametrize(
    ("asked", "told"),
    [("", True), (">=0.10", True), (">=0.10,<0.14", False), (">=0.10,<0.13.2", False), ("<0.12", False)],
)
def test_a_fresh_install_takes_the_newest_release(asked: str, told: bool, known: matrix.Matrix) -> None:
    """LLaVA pins transformers 4.37.2 and leaves peft open."""
    facts = {"distributions": {"transformers": "4.37.2"}, "distribution_ranges": {"peft": asked}}
    statuses = {finding.id: finding.status for finding in matrix.judge(known, Environment(facts)).findings}
    assert statuses.get("CC-2026-1330") == ("possible" if told else None)


def test_two_packages_left_open_say_nothing(known: matrix.Matrix) -> None:
    ranges = dict.fromkeys(("torch", "transformers", "peft", "accelerate", "deepspeed", "datasets", "numpy"), "")
    assert matrix.judge(known, Environment({"distribution_ranges": ranges})).findings == ()


def test_a_finding_says_which_part_of_the_range_it_is_about(known: matrix.Matrix) -> None:
    environment = Environment({"distribution_ranges": {"torch": ">=2.4,<2.6"}, "cuda": {"runtime": "12.4"}})
    finding = next(each for each in matrix.judge(known, environment).findings if each.id == "CC-2024-0001")
    assert finding.status == "possible"
    assert finding.partly == {"distributions.torch": "may be >=2.4,<2.6; only >=2.5.0,<2.5.1 is affected"}
    assert finding.summary.endswith("The project's torch may be >=2.4,<2.6; only >=2.5.0,<2.5.1 is affected.")


def test_a_range_all_of_which_is_bad_is_as_affected_as_a_version(known: matrix.Matrix) -> None:
    asked = {"deepspeed": ">=0.7.0,<0.14", "torch": ">=2.4,<2.6"}
    statuses = {
        finding.id: finding.status
        for finding in matrix.judge(known, Environment({"distribution_ranges": asked})).findings
    }
    assert statuses["CC-2026-1330"] == "affected"
