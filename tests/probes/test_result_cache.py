"""What was measured is remembered for the same question in the same environment, and for nothing else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import Memory, _result_cache, _run, run_all
from compatcheck.results.findings import Outcome, ProbeResult

NAME = "labels_masked"
Ask = Callable[..., ProbeResult]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "cache" / "compatcheck"))
    return tmp_path / "cache" / "compatcheck" / "probes"


@pytest.fixture
def place(tmp_path: Path) -> Target:
    (tmp_path / "site-packages").mkdir()
    return Target(sys.executable, "3.11.7", sys.prefix, (str(tmp_path / "site-packages"),), "the tests name it")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """The requests that were really measured; each answers with the outcome it names."""
    requests: list[Mapping[str, Any]] = []

    def once(children: object, name: str, request: Mapping[str, Any], *rest: Any) -> ProbeResult:
        requests.append(request)
        outcome: Outcome = request.get("answer", "pass")
        return ProbeResult(name, outcome, "measured", {"rows": [{"theta": 0.5}], "child": {}})

    monkeypatch.setattr(_run, "_run_once", once)
    return requests


@pytest.fixture
def ask(cache: Path, place: Target, measured: list[Mapping[str, Any]]) -> Ask:
    def once(environment: str = "torch 2.5.0", fresh: bool = False, **request: Any) -> ProbeResult:
        return run_all([(NAME, request)], place, memory=Memory(environment, fresh))[0]

    return once


def test_the_second_time_it_is_not_measured_and_says_from_when_it_is(
    ask: Ask, measured: list[Mapping[str, Any]]
) -> None:
    first, second = ask(), ask()
    assert len(measured) == 1
    assert "remembered" not in first.measured
    assert second.why == f"measured (remembered from {second.measured['remembered']})"
    assert second.outcome == first.outcome and second.measured["rows"] == first.measured["rows"]


@pytest.mark.parametrize("outcome", ["skip", "crash", "timeout", "watch"])
def test_what_could_not_run_or_was_not_clear_is_tried_again(
    ask: Ask, measured: list[Mapping[str, Any]], outcome: str
) -> None:
    assert ask(answer=outcome).outcome == ask(answer=outcome).outcome == outcome
    assert len(measured) == 2


def test_fresh_measures_again_and_is_remembered_itself(ask: Ask, measured: list[Mapping[str, Any]]) -> None:
    ask(), ask(fresh=True), ask()
    assert len(measured) == 2


def test_another_question_or_environment_is_another_measurement(
    ask: Ask, measured: list[Mapping[str, Any]], place: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen() -> int:
        ask(samples_file=str(tmp_path / "samples.jsonl"))
        return len(measured)

    assert seen() == 1
    ask("torch 2.5.1", samples_file=str(tmp_path / "samples.jsonl"))
    ask("torch 2.5.1", samples_file=str(tmp_path / "samples.jsonl"), seed=1)
    ask("torch 2.5.1", samples_file=str(tmp_path / "samples.jsonl"), dtype="float16")
    assert len(measured) == 4
    assert seen() == 5 and seen() == 5
    monkeypatch.setenv("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")
    assert seen() == 6
    (tmp_path / "samples.jsonl").write_text("{}\n", encoding="utf-8")
    assert seen() == 7
    os.utime(place.search_path[0], (1, 1))
    assert seen() == 8 and seen() == 8
    monkeypatch.setattr(_result_cache, "_sources", lambda name: "an edited probe")
    assert seen() == 9


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"state": 1}', "[" * 100_000, '{"outcome": "pass"}'])
def test_a_damaged_note_is_ignored(ask: Ask, measured: list[Mapping[str, Any]], cache: Path, damage: str) -> None:
    ask()
    (note,) = cache.iterdir()
    note.write_text(damage, encoding="utf-8")
    assert ask().outcome == "pass" and len(measured) == 2


@pytest.mark.parametrize(("key", "value"), [("outcome", "skip"), ("measured", 7), ("outcome", ["pass"])])
def test_a_note_that_cannot_be_ours_is_ignored(
    ask: Ask, measured: list[Mapping[str, Any]], cache: Path, key: str, value: object
) -> None:
    ask()
    (note,) = cache.iterdir()
    note.write_text(json.dumps({**json.loads(note.read_text(encoding="utf-8")), key: value}), encoding="utf-8")
    ask()
    assert len(measured) == 2


def test_a_newer_environment_takes_the_place_of_the_older_one(ask: Ask, cache: Path) -> None:
    for version in ("2.5.0", "2.5.1", "2.6.0"):
        ask(version)
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("path", ["/a\0b", "/\ud800"])
def test_a_path_that_no_file_can_have_is_asked_all_the_same(ask: Ask, path: str) -> None:
    assert ask(samples_file=path).outcome == ask(samples_file=path).outcome == "pass"


def test_a_cache_that_cannot_be_written_costs_nothing_else(
    ask: Ask, measured: list[Mapping[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file in its place", encoding="utf-8")
    assert ask().outcome == ask().outcome == "pass" and len(measured) == 2
