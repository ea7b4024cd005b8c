"""What is suspected of a failing environment beyond what it states: entries that hang on one package, by their day."""

from __future__ import annotations

from datetime import date

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.inference.inferred import Inferred
from compatcheck.inference.report_date import limits_by_day
from compatcheck.matrix.matching.match import TraitVerdict, match_table
from compatcheck.matrix.matching.suspicion import nearest
from compatcheck.packages.frameworks import frameworks
from compatcheck.pipelines.check import check

RELEASES = {"torch": {"2.5.0": date(2024, 10, 17), "2.4.0": date(2024, 7, 24)}, "peft": {"0.12.0": "2024-07-24"}}
ENTRIES = [
    {"id": "CC-2024-0001", "published": "2024-10-01"},
    {"id": "CC-2024-0002", "published": date(2024, 11, 2)},
    {"id": "CC-2024-0003", "published": "2022-08-01"},
    {"id": "CC-2024-0005", "published": "2022-07-01"},
    {"id": "CC-2024-0004", "published": "2026-01-01"},
]


@pytest.mark.parametrize(
    ("stated", "number", "chosen"),
    [
        ({"torch": "2.5.0+cu124", "peft": "0.12.0"}, 1, {"CC-2024-0001"}),
        ({"torch": "2.5.0", "numpy": "1.26.4"}, 2, {"CC-2024-0001", "CC-2024-0002"}),
        ({"peft": "0.12.0"}, 4, {"CC-2024-0001", "CC-2024-0002", "CC-2024-0003"}),
        ({"torch": "2.5.0", "peft": None}, 0, set()),
        ({"torch": "2.5.0.dev20240801"}, 2, set()),
        ({}, 2, set()),
    ],
)
def test_the_nearest_to_the_newest_stated_release_are_chosen(
    stated: dict[str, str | None], number: int, chosen: set[str]
) -> None:
    assert nearest(ENTRIES, Environment({"distributions": stated}), RELEASES, number) == chosen


@pytest.fixture(scope="module")
def known() -> matrix.Matrix:
    return matrix.load()


def test_what_is_suspected_is_possible_and_names_the_package_that_decides(known: matrix.Matrix) -> None:
    environment = Environment({"distributions": {"transformers": "4.47.1", "torch": "2.5.1"}})
    told = {finding.id for finding in check(environment, known).findings}
    further = [each for each in check(environment, known, suspected=2).findings if each.id not in told]
    assert len(further) == 2
    for finding in further:
        assert finding.status == "possible"
        assert len([path for path in finding.missing if path.startswith("distributions.")]) == 1


def test_nothing_is_suspected_of_packages_that_are_known_not_to_be_there(known: matrix.Matrix) -> None:
    stated = Environment({"distributions": {"transformers": "4.47.1", "torch": "2.5.1"}})
    further = {
        path[14:]: None
        for finding in check(stated, known, suspected=known.entries).findings
        for path in finding.missing
        if path.startswith("distributions.")
    }
    complete = Environment({"distributions": {**stated.facts["distributions"], **further}})
    for finding in check(complete, known, suspected=known.entries).findings:
        assert not {f"distributions.{name}" for name in further} & set(finding.missing)


def test_a_healthy_environment_without_training_settings_is_told_nothing(known: matrix.Matrix) -> None:
    stated = {"transformers": "4.57.6", "torch": "2.9.1", "accelerate": "1.12.0", "peft": "0.18.0", "numpy": "2.3.5"}
    healthy = {"distributions": stated, "distributions_complete": True, "python": "3.11.7", "cuda": {"runtime": None}}
    assert check(Environment(healthy), known).findings == ()


def test_nothing_is_suspected_where_something_is_affected(known: matrix.Matrix) -> None:
    environment = Environment({"distributions": {"transformers": "4.47.1", "torch": "2.5.1", "torchvision": "0.21.0"}})
    found = check(environment, known).findings
    assert any(finding.status == "affected" for finding in found)
    assert check(environment, known, suspected=2).findings == found


def test_a_framework_that_nobody_named_is_not_suspected(known: matrix.Matrix) -> None:
    environment = Environment({"distributions": {"transformers": "4.47.1", "torch": "2.5.1", "accelerate": "0.30.0"}})
    missing = {path for each in check(environment, known, suspected=known.entries).findings for path in each.missing}
    assert any(path.startswith("distributions.") for path in missing)
    programs = [each for each in frameworks().values() if each.program]
    assert not missing & {f"distributions.{name}" for each in programs for name in each.distributions}


def test_the_day_of_the_report_counts_before_that_of_its_newest_release() -> None:
    environment = Environment({"distributions": {"torch": "2.5.0"}, "report": {"date": "2022-02-01"}})
    assert nearest(ENTRIES, environment, RELEASES, 1) == {"CC-2024-0005"}


@pytest.mark.parametrize(
    ("package", "range_", "away"),
    [
        ("deepspeed", "<0.17.0", True),
        ("deepspeed", "<0.9.0", False),
        ("deepspeed", ">=0.18.0", False),
        ("ctranslate2", "<5", False),
        ("faiss-cpu", "<2", True),
    ],
)
def test_one_package_is_away_that_people_ran_by_then_and_might_leave_out(
    known: matrix.Matrix, package: str, range_: str, away: bool
) -> None:
    stated = {"distributions": {"transformers": "4.49.0"}, "report": {"date": "2025-03-20"}}
    table = {"distributions.transformers": "<4.50.0", f"distributions.{package}": range_}
    environment = Environment(stated)
    bounds = Inferred(limits=limits_by_day(environment, known.table))
    verdict = match_table(table, environment, lambda name, _: TraitVerdict(None), None, bounds, suspecting=True)
    assert verdict.one_package_away is away
