"""From an environment on disk to facts, and to the note that is kept of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compatcheck import import_check, matrix
from compatcheck.environment import Environment
from compatcheck.environment.snapshot import load_snapshot
from compatcheck.import_check import _cache
from compatcheck.installed.target import find_target
from compatcheck.pipelines.check import check
from tests.import_check.conftest import install, target_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def skewed(site: Path) -> Path:
    install(site, "transformers", "4.40.2", {"transformers/__init__.py": "class Trainer: ...\n"})
    install(
        site,
        "peft",
        "0.15.0",
        {"peft/__init__.py": "from .model import M\n", "peft/model.py": "\nfrom transformers import Gone\n"},
    )
    return site


def test_a_missing_name_is_told_with_its_line_versions_and_way(skewed: Path) -> None:
    (found,) = import_check.collect(target_of(skewed)).facts["unresolved_imports"][-1:]
    assert found["distribution"] == "peft" and found["version"] == "0.15.0"
    assert (found["file"], found["line"]) == ("peft/model.py", 2)
    assert (found["module"], found["name"]) == ("transformers", "Gone")
    assert (found["provider"], found["provider_version"]) == ("transformers", "4.40.2")
    assert found["statement"] == "import peft" and found["chain"] == ["peft/model.py:2", "peft/__init__.py:1"]


def test_the_finding_names_importer_line_name_and_both_sides(skewed: Path) -> None:
    environment = Environment({"distributions": {"peft": "0.15.0"}, **import_check.collect(target_of(skewed)).facts})
    report = check(load_snapshot(json.dumps(environment.dump()), "snapshot"), matrix.load())
    (finding,) = [each for each in report.findings if "Gone" in each.summary]
    assert finding.id == "CC-2026-0050" and finding.status == "affected"
    assert finding.packages == ("transformers", "peft")
    assert "peft 0.15.0" in finding.summary and "peft/model.py:2" in finding.summary
    assert "transformers 4.40.2" in finding.summary


def test_a_result_is_remembered_until_a_distribution_changes(skewed: Path) -> None:
    target = target_of(skewed)
    assert import_check.remembered(target).facts == {}
    first = import_check.collect(target)
    assert import_check.remembered(target) == first
    install(skewed, "trl", "1.0", {"trl/__init__.py": ""})
    assert import_check.remembered(target).facts == {}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b'{"state": "x"}', b"[" * 100_000])
def test_a_broken_note_counts_as_none(skewed: Path, cache: Path, content: bytes) -> None:
    target = target_of(skewed)
    first = import_check.collect(target)
    (note,) = cache.rglob("*.json")
    note.write_bytes(content)
    assert import_check.remembered(target).facts == {}
    assert import_check.collect(target) == first


def test_a_cache_that_cannot_be_written_changes_nothing(skewed: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be", encoding="utf-8")
    assert import_check.collect(target_of(skewed)).facts["unresolved_imports"]
    assert _cache.recall(target_of(skewed)) is None


def test_the_code_of_a_model_is_held_against_the_environment(skewed: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "configuration_x.py").write_text("class Config: ...\n", encoding="utf-8")
    (model / "modeling_x.py").write_text(
        "from .configuration_x import Config\nfrom transformers import Trainer\nfrom transformers import Old\n",
        encoding="utf-8",
    )
    found = import_check.collect(target_of(skewed), model_folders=[str(model)]).facts["unresolved_imports"]
    of_model = [each for each in found if each["name"] == "Old"]
    assert [(each["file"], each["line"]) for each in of_model] == [(str(model / "modeling_x.py"), 3)]


@pytest.mark.stack
def test_the_stack_of_the_tests_is_healthy(stack: Path) -> None:
    target = find_target(str(stack), {})
    assert import_check.collect(target).facts["unresolved_imports"] == []
