"""What the day of a report says of remedies, of causes and of development versions."""

from __future__ import annotations

from datetime import date

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix.matching.by_day import could_be_run_by, existing_first, remedies_by
from compatcheck.results.findings import Remedy

HISTORY = {
    "triton": {"2.3.0": date(2024, 4, 24), "3.0.0": date(2024, 7, 24)},
    "torch": {"2.5.0": date(2024, 10, 17), "2.5.1": date(2024, 10, 29)},
}
NEWER_TRITON = Remedy("pins", "has the name", {"triton": ">=3.0.0"})
NEWER_TORCH = Remedy("pins", "does not ask for it", {"torch": ">=2.5.1,<3", "triton": ">=3.0.0"})
UNKNOWN = Remedy("pins", "is listed nowhere", {"some-package": ">=9"})
SETTING = Remedy("config", "goes without", config={"training.packing": False})
ALL = (NEWER_TRITON, NEWER_TORCH, UNKNOWN, SETTING)


@pytest.mark.parametrize(
    ("day", "existed"),
    [
        (None, ALL),
        (date(2024, 7, 23), (UNKNOWN, SETTING)),
        (date(2024, 7, 24), (NEWER_TRITON, UNKNOWN, SETTING)),
        (date(2024, 10, 29), ALL),
    ],
)
def test_remedies_that_existed_on_a_day(day: date | None, existed: tuple[Remedy, ...]) -> None:
    assert remedies_by(ALL, day, HISTORY) == existed


def test_later_remedies_come_last_and_say_so() -> None:
    ordered = existing_first(ALL, date(2024, 7, 30), HISTORY)
    assert ordered[:3] == (NEWER_TRITON, UNKNOWN, SETTING)
    assert [remedy.why for remedy in ordered[3:]] == ["does not ask for it; released after the report of 2024-07-30"]
    assert existing_first(ALL, None, HISTORY) == ALL


@pytest.mark.parametrize(
    ("ranges", "day", "possible"),
    [
        ({"torch": ">=2.5.0,<2.5.1"}, date(2024, 10, 16), False),
        ({"torch": ">=2.5.0,<2.5.1"}, date(2024, 10, 17), True),
        ({"torch": "<2.6"}, date(2024, 10, 17), True),
        ({"torch": "present", "some-package": ">=9"}, date(2020, 1, 1), True),
        ({"torch": ">=2.5.0", "triton": ">=3.0.0"}, date(2024, 7, 1), False),
        ({"torch": ">=2.5.0"}, None, True),
    ],
)
def test_cause_has_to_be_out(ranges: dict[str, str], day: date | None, possible: bool) -> None:
    assert could_be_run_by(ranges, day, HISTORY) is possible


@pytest.mark.parametrize(
    ("version", "day", "status"),
    [
        ("0.33.0.dev0", "2025-01-10", "affected"),
        ("0.33.0.dev0", "2025-02-10", None),
        ("0.33.0.dev0", None, "possible"),
        ("0.34.0.dev0", "2025-01-10", None),
        ("0.32.1", None, "affected"),
        ("0.32.2", "2025-01-10", None),
    ],
)
def test_development_version_has_fixes_from_their_day_on(
    known: matrix.Matrix, version: str, day: str | None, status: str | None
) -> None:
    environment = Environment(
        {
            "distributions": {"diffusers": version, "torch": "2.4.1"},
            "model": {"name": "hunyuanvideo-community/HunyuanVideo"},
            **({"report": {"date": day}} if day else {}),
        }
    )
    found = {finding.id: finding.status for finding in matrix.judge(known, environment).findings}
    assert found.get("CC-2025-2111") == status
