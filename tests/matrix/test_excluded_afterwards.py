"""What a package's next releases excluded of another, and what of it the table keeps."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.traits import excluded_by_next_release
from tools.tables import excluded_afterwards
from tools.tables.excluded_afterwards import Exclusion

KNOWN = matrix.load()
ROWS = [
    (package, other, row)
    for package, others in KNOWN.table("excluded-afterwards").items()
    if isinstance(others, dict)
    for other, rows in others.items()
    for row in rows
]


def environment(**distributions: str) -> Environment:
    return Environment({"distributions": distributions})


def test_both_ways_out_are_offered() -> None:
    verdict = excluded_by_next_release.find(environment(datasets="2.14.4", fsspec="2023.10.0"), KNOWN.table)
    (occurrence,) = verdict.occurrences
    assert verdict.holds is True
    assert occurrence.summary.startswith(
        "datasets 2.14.4 accepts fsspec 2023.10.0, but its release 2.14.5 excludes that version"
    )
    assert SpecifierSet(occurrence.pins["fsspec"]).contains("2023.6.0")
    assert not SpecifierSet(occurrence.pins["fsspec"]).contains("2023.9.0")
    assert occurrence.instead == {"datasets": ">=2.14.6"}


@pytest.mark.parametrize(
    "distributions",
    [
        {"datasets": "2.14.4", "fsspec": "2023.6.0"},
        {"datasets": "2.14.6", "fsspec": "2023.10.0"},
        {"datasets": "2.14.4.dev0", "fsspec": "2023.10.0"},
        {"trl": "0.12.1", "transformers": "4.47.0.dev0"},
        {"unsloth": "2025.3.3", "torch": "2.7.1a0+7c8ec84dab.nv25.03"},
        {"datasets": "2.14.4"},
        {},
    ],
)
def test_what_no_release_excludes_stays_open(distributions: dict[str, str]) -> None:
    verdict = excluded_by_next_release.find(environment(**distributions), KNOWN.table)
    assert (verdict.holds, verdict.occurrences) == (None, ())


@given(st.sampled_from(ROWS), st.sampled_from(["2.0.0", "2.14.4", "4.47.0", "5.0.0", "2023.10.0", "0.0.1"]))
def test_nothing_that_the_excluding_release_accepts_is_told(row: tuple[str, str, list[str]], version: str) -> None:
    package, other, (first, _last, lowest, highest, by, demand, accepting) = row
    assert Version(first) < Version(by)
    assert not SpecifierSet(demand).contains(lowest)
    assert not accepting or Version(accepting) > Version(by)
    within = Version(lowest) <= Version(version) and (not highest or Version(version) <= Version(highest))
    verdict = excluded_by_next_release.find(environment(**{package: first, other: version}), KNOWN.table)
    excluded = within and not SpecifierSet(demand).contains(version)
    assert excluded <= bool(verdict.occurrences)
    assert all(not SpecifierSet(each.pins[other]).contains(version) for each in verdict.occurrences)


def days(**by_version: str) -> dict[Version, date]:
    return {Version(name[1:].replace("_", ".")): date.fromisoformat(day) for name, day in by_version.items()}


OTHERS = days(v4_46_0="2024-10-24", v4_47_0="2024-12-05", v4_48_0="2025-01-10")


@pytest.mark.parametrize(
    ("demands", "released", "expected"),
    [
        pytest.param(
            {"0.12": ">=4.46", "0.12.2": "<4.47", "0.13": ">=4.46"},
            days(v0_12="2024-11-04", v0_12_2="2024-12-06", v0_13="2024-12-16"),
            {"0.12": Exclusion(Version("4.47.0"), None, Version("0.12.2"), "<4.47", Version("0.13"))},
            id="a bound that speaks of what came later, too",
        ),
        pytest.param(
            {"1.0": "", "1.1": "!=4.47.0"},
            days(v1_0="2024-12-01", v1_1="2025-02-01"),
            {"1.0": Exclusion(Version("4.47.0"), Version("4.47.0"), Version("1.1"), "!=4.47.0", None)},
            id="one version by its name",
        ),
        pytest.param({"1.0": "", "1.1": "<5"}, days(v1_0="2024-12-01", v1_1="2025-02-01"), {}, id="mere caution"),
        pytest.param(
            {"1.0": "", "1.1": ">=4.47"}, days(v1_0="2024-12-01", v1_1="2025-02-01"), {}, id="a floor that rises"
        ),
        pytest.param(
            {"1.0": "", "1.1": "==4.46.0"}, days(v1_0="2024-12-01", v1_1="2025-02-01"), {}, id="one version alone"
        ),
        pytest.param({"1.0": "", "1.1": "<4.47"}, days(v1_0="2023-12-01", v1_1="2025-02-01"), {}, id="a year later"),
        pytest.param({"1.0": "", "1.1": "<4.48"}, days(v1_0="2024-11-01", v1_1="2024-12-20"), {}, id="not out yet"),
    ],
)
def test_an_exclusion_is_one_of_what_was_out_and_accepted_before(
    demands: dict[str, str], released: dict[Version, date], expected: dict[str, Exclusion]
) -> None:
    declared = {Version(version): text for version, text in demands.items()}
    found = dict(excluded_afterwards.exclusions(declared, released, OTHERS))
    assert found == {Version(version): exclusion for version, exclusion in expected.items()}
