"""What is compiled of a checkout's sources is kept, and made anew as soon as a source has changed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from compatcheck import matrix
from compatcheck.errors import DataError, InputError
from compatcheck.matrix import _source_cache, loading
from tests.conftest import SOURCES

ENTRY = "torch/CC-2024-0001.toml"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A matrix of one entry, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "matrix"
    shutil.copytree(SOURCES / "tables", folder / "tables")
    (folder / "torch").mkdir()
    shutil.copy(SOURCES / ENTRY, folder / ENTRY)
    return folder


def kept(sources: Path) -> Path:
    folder = _source_cache.compiled(str(sources))
    assert folder is not None
    return Path(folder)


def test_what_was_compiled_is_taken_until_a_source_changes(sources: Path) -> None:
    first = kept(sources)
    (first / "index.json").touch()
    assert kept(sources) == first and [each.name for each in first.parent.iterdir()] == [first.name]
    text = (sources / ENTRY).read_text(encoding="utf-8")
    (sources / ENTRY).write_text(text.replace('title = "', 'title = "Now: ', 1), encoding="utf-8")
    again = kept(sources)
    assert again != first
    titles = [matrix.all_entries(loading.load_compiled(str(each)))[0]["title"] for each in (first, again)]
    assert titles[1] == f"Now: {titles[0]}"


def test_a_source_that_is_new_or_gone_counts(sources: Path) -> None:
    first = kept(sources)
    shutil.copy(SOURCES / "torch" / "CC-2026-0912.toml", sources / "torch")
    assert loading.load_compiled(str(kept(sources))).entries == 2
    (sources / "torch" / "CC-2026-0912.toml").unlink()
    assert kept(sources) == first


def test_wrong_sources_are_told_and_nothing_is_kept(sources: Path, tmp_path: Path) -> None:
    (sources / ENTRY).write_text("id = 3", encoding="utf-8")
    with pytest.raises((DataError, InputError)):
        _source_cache.compiled(str(sources))
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_costs_no_more_than_time(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    assert _source_cache.compiled(str(sources)) is None


def test_what_is_days_old_is_removed_when_something_newer_is_made(sources: Path) -> None:
    first = kept(sources)
    os.utime(first, (0, 0))
    shutil.copy(SOURCES / "torch" / "CC-2026-0912.toml", sources / "torch")
    kept(sources)
    assert not first.exists()


def test_a_checkout_without_babel_tells_its_entries_in_english(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sources / "translations").mkdir()
    shutil.copy(SOURCES / "translations" / "zh.po", sources / "translations")
    translated = kept(sources)
    monkeypatch.setitem(sys.modules, "babel", None)
    plain = kept(sources)
    assert plain != translated and loading.load_compiled(str(plain)).entries == 1
