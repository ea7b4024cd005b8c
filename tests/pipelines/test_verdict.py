"""The verdict chain: what each option makes of one report."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment.snapshot import read_snapshot
from compatcheck.errors import InputError
from compatcheck.pipelines import verdict
from compatcheck.pipelines.verdict import Options
from compatcheck.report import render
from compatcheck.report.document import Exit
from compatcheck.report.subjects.check import document
from compatcheck.settings import Ignore, Settings
from tests.conftest import ROOT

ENTRY = "CC-2024-0001"
DEMO = read_snapshot(str(ROOT / "compatcheck" / "demo" / "glm-4.json"))
_NOT_HERE = ": this environment is not installed here; check an installed environment, without --no-probe"
IGNORE = Ignore(ENTRY, "batch size is 1", date(2999, 1, 1))


@pytest.fixture(scope="module")
def known() -> matrix.Matrix:
    return matrix.load()


@pytest.mark.parametrize(
    ("options", "status", "reason"),
    [
        (Options(), 1, "1 finding at or above affected"),
        (Options(fail_on="confirmed"), 0, "no finding at or above confirmed"),
        (Options(fail_on="never"), 0, "--fail-on never"),
        (Options(Settings(fail_on="never")), 0, "--fail-on never"),
        (Options(Settings(fail_on="never"), fail_on="affected"), 1, "1 finding at or above affected"),
        (Options(ignore=(ENTRY,)), 0, "no finding at or above affected"),
        (Options(select=("CC-2024-1000",)), 0, "no finding at or above affected"),
        (Options(Settings(select=("CC-2024-1000",))), 0, "no finding at or above affected"),
        (Options(Settings(select=("CC-2024-1000",)), select=(ENTRY,)), 1, "1 finding at or above affected"),
        (Options(Settings(ignores=(IGNORE,))), 0, "no finding at or above affected"),
        (Options(require=("numerics",)), 4, f"numerics required: the probe of {ENTRY} could not run{_NOT_HERE}"),
        (Options(Settings(ignores=(IGNORE,)), require=("numerics",)), 0, "no finding at or above affected"),
    ],
)
def test_options_decide_the_exit_status(known: matrix.Matrix, options: Options, status: int, reason: str) -> None:
    judged = verdict.judge(DEMO, known, options)
    assert (judged.exit_status, judged.reason) == (status, reason)


def test_a_baseline_subtracts_what_it_holds(known: matrix.Matrix, tmp_path: Path) -> None:
    first = verdict.judge(DEMO, known, Options())
    baseline = tmp_path / "before.json"
    baseline.write_text(render(document(first.report, Exit(first.reason)), "json"), encoding="utf-8")
    for options in (Options(baseline=str(baseline)), Options(Settings(baseline=str(baseline)))):
        judged = verdict.judge(DEMO, known, options)
        assert (judged.exit_status, len(judged.report.suppressed)) == (0, 1)
    held: Any = json.loads(baseline.read_text(encoding="utf-8"))
    assert held["exit_reason"] == first.reason


def test_maps_are_drawn_only_where_asked(known: matrix.Matrix) -> None:
    assert not verdict.judge(DEMO, known, Options()).report.maps
    assert verdict.judge(DEMO, known, Options(maps=True)).report.maps


def test_part_of_a_project_leaves_idle_ignores_alone(known: matrix.Matrix) -> None:
    idle = Options(Settings("pyproject.toml", ignores=(Ignore("CC-2024-1000", "why", date(2999, 1, 1)),)))
    report = verdict.compare(DEMO, known, idle)
    assert verdict.conclude(report, known, idle).report.remarks
    assert not verdict.conclude(report, known, idle, whole=False).report.remarks


@pytest.mark.parametrize("options", [Options(select=("CC-1",)), Options(ignore=("CC-1",))])
def test_an_unknown_id_is_refused(known: matrix.Matrix, options: Options) -> None:
    with pytest.raises(InputError, match="CC-1"):
        verdict.judge(DEMO, known, options)


def test_unknown_settings_name_their_file(known: matrix.Matrix) -> None:
    with pytest.raises(InputError, match=r"reading settings from pyproject\.toml: select names CC-1"):
        verdict.judge(DEMO, known, Options(Settings("pyproject.toml", select=("CC-1",))))
