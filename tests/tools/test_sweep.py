"""The sweep over releases: which stacks, what is recorded of them, and the page."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from compatcheck.probes import names
from compatcheck.results.findings import ProbeResult
from tools.sweep import _build, _kinds, _page, _records, _stacks
from tools.sweep._stacks import DAY, NEWEST, SUBJECTS, TRIALS, Stack

ROWS = [
    {"case": "a", "variant": "trainer", "theta": 9.0, "rho": 0.0},
    {"case": "a", "variant": "formula", "theta": 0.5, "rho": 0.0, "control": True},
    {"case": "b", "variant": "trainer", "theta": "inf", "rho": 0.0},
    {"case": "c", "variant": "trainer", "theta": 99.0, "rho": 0.0, "recorded": "by design"},
    {"case": "d", "variant": "trainer", "error": "ValueError: no"},
]


def test_every_release_is_planned_once_of_its_day_and_beside_the_newest() -> None:
    planned = [stack.name for stack in _stacks.plan()]
    assert len(planned) == len(set(planned))
    for package in SUBJECTS:
        for version in _stacks.releases(package):
            assert {f"{package} {version}, {DAY}", f"{package} {version}, {NEWEST}"} <= set(planned)


def test_a_plan_that_is_cut_short_has_seen_all_times() -> None:
    first = [stack for stack in _stacks.plan() if stack.package == "transformers"][:8]
    days = sorted(stack.until for stack in first if stack.until)
    assert days[0].year == 2023 and days[-1].year >= 2026
    assert all(later - earlier < datetime.timedelta(days=365) for earlier, later in zip(days, days[1:]))


def test_torch_is_the_last_that_was_out() -> None:
    assert _stacks.torch_of(datetime.date(2024, 10, 1)) == "2.4.1"
    assert _stacks.torch_of(datetime.date(2023, 6, 8)) == _stacks.TORCHES[0]
    assert _stacks.torch_of(None) == _stacks.TORCHES[-1]


def test_the_newest_are_asked_of_the_index() -> None:
    stacks = list(_stacks.newest({"torch": "9.1.0"}.get))  # type: ignore[arg-type]
    assert {stack.torch for stack in stacks} == {"9.1.0"}
    assert all(stack.until is None and stack.companions == NEWEST for stack in stacks)


def test_every_column_is_a_probe() -> None:
    columns = {column for subject in SUBJECTS.values() for column in subject.columns}
    assert {TRIALS.get(column, (column, {}))[0] for column in columns} <= set(names())
    assert all(_records.digest(column) for column in columns)


def test_a_digest_covers_the_request_and_what_the_probe_imports() -> None:
    assert _records.digest("save_reload") != _records.digest("save_reload, LoRA")
    files = {path.name for path in _records._files(_records._units.paths()["save_reload"])}
    assert {"save_reload.py", "_criterion.py", "_model.py"} <= files


def test_judged_rows_alone_make_the_worst_and_the_failing() -> None:
    assert _records.worst({"rows": ROWS}) == "inf"
    assert _records.worst({"rows": ROWS[:2]}) == 9.0
    assert _records.worst({"rows": [{"error": 3e-4, "bound": 1e-4, "judged": True}]}) == 3.0
    assert _records.failing({"rows": ROWS}) == [
        "a, trainer (theta 9)",
        "b, trainer (theta inf)",
        "d, trainer (ValueError: no)",
    ]


def test_a_record_replaces_the_older_of_its_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_records, "RECORDS", tmp_path / "swept.json")
    row = _records.row("save_reload", ProbeResult("save_reload", "pass", "equal", {"rows": []}, 1.25))
    one = {"stack": "torch 2.4.1, newest", "packages": {"torch": "2.4.1"}, "probes": {"save_reload": row}}
    _records.keep(one)
    _records.keep({**one, "stack": "torch 2.8.0, newest"})
    _records.keep({**one, "probes": {"matmul": row}})
    assert list(_records.read()) == ["torch 2.8.0, newest", "torch 2.4.1, newest"]
    assert set(_records.read()["torch 2.4.1, newest"]["probes"]) == {"save_reload", "matmul"}
    _records.keep({**one, "packages": {"torch": "2.4.1", "numpy": "2.0.0"}, "probes": {"matmul": row}})
    assert set(_records.read()["torch 2.4.1, newest"]["probes"]) == {"matmul"}


def test_the_page_shows_outcomes_and_names_what_failed() -> None:
    failed = {"outcome": "fail", "why": "wrong", "failing": ["one batch, trainer"]}
    record = {"stack": f"trl 1.0.0, {DAY}", "packages": {"torch": "2.8.0"}, "probes": {"trl_sft": failed}}
    text = _page.text([record, {"stack": f"trl 1.1.0, {DAY}", "packages": {}, "unbuildable": "no", "probes": {}}])
    assert "| 1.0.0 | 2.8.0 |" in text and "| **fail** |" in text
    assert "- `trl_sft` on 1.0.0: one batch, trainer" in text
    assert "Cannot be installed so: 1.1.0" in text


def test_the_page_is_that_of_the_records() -> None:
    """Made by ``python -m tools.sweep --page``."""
    assert _page.PAGE.read_text(encoding="utf-8") == _page.text(
        list(_records.read().values()), list(_records.read(_kinds.SCANNED).values())
    )


def test_kinds_that_have_run_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kinds, "SCANNED", tmp_path / "kinds.json")
    monkeypatch.setattr(_kinds._build, "build", lambda stack, folder: folder / "python")
    monkeypatch.setattr(_kinds._build, "versions", lambda python: {"torch": "2.13.0"})
    monkeypatch.setattr(_kinds, "find_target", lambda python, environ: None)
    asked: list[tuple[str, str]] = []

    def run_all(trials: list[tuple[str, dict[str, Any]]], target: object) -> list[ProbeResult]:
        asked.extend((name, request["config"]["model_type"]) for name, request in trials)
        return [ProbeResult(name, "pass", "equal", {"rows": []}, 1.0) for name, _ in trials]

    monkeypatch.setattr(_kinds.probes, "run_all", run_all)
    columns = ["save_reload", "micro_training, padded left"]
    list(_kinds.scan("5.24.0", ["llama"], columns[:1], False, 60.0, tmp_path))
    list(_kinds.scan("5.24.0", ["llama", "bert"], columns, False, 60.0, tmp_path))
    assert asked == [
        ("save_reload", "llama"),
        ("micro_training", "llama"),
        ("save_reload", "bert"),
        ("micro_training", "bert"),
    ]
    rows = _records.read(tmp_path / "kinds.json")["transformers 5.24.0, llama"]["probes"]
    assert set(rows) == set(columns) and "why" not in rows["save_reload"]


def test_encoders_are_scanned_as_decoders() -> None:
    assert _kinds.config("bert") == {"model_type": "bert", "is_decoder": True}
    assert _kinds.config("llama") == {"model_type": "llama"}


def test_every_kind_column_is_a_probe() -> None:
    assert {TRIALS.get(column, (column, {}))[0] for column in _kinds.COLUMNS} <= set(names())


def test_the_page_lists_kinds_that_fail_and_counts_the_rest() -> None:
    rows = {"good": "pass", "bad": "fail", "odd": "skip"}
    kinds = [
        {
            "stack": f"transformers 5.24.0, {kind}",
            "packages": {"torch": "2.13.0"},
            "probes": {"save_reload": {"outcome": found}},
        }
        for kind, found in rows.items()
    ]
    text = _page.text([], kinds)
    assert "1 pass, 1 fail, 1 skip" in text
    assert "| `bad` |  | **fail** |  |" in text and "`good`" not in text
    assert "does not build small: odd." in text


@pytest.mark.network
def test_requirements_that_conflict_are_no_crash(tmp_path: Path) -> None:
    stack = Stack("torch", "0.0.1", NEWEST, "0.0.1", None, (), ())
    with pytest.raises(_build.Unbuildable, match="torch"):
        _build.build(stack, tmp_path / "stack")
