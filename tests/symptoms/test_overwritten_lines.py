"""Text that overwrites itself, as progress bars do: bounded work, whatever its length, and progress."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from compatcheck.files import limits
from compatcheck.symptoms import read
from compatcheck.terminal import progress

PIECE = "{'loss': 2.5, 'epoch': 0.1}\r"


def log_of(folder: Path, text: str) -> Path:
    path = folder / "train.log"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_of_very_many_pieces_most_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OVERWRITTEN_PIECES", 5_000)
    log = read(str(log_of(tmp_path, PIECE * 40_000 + "{'loss': nan, 'epoch': 0.2}\r" * 40_000)))
    (run,) = log.runs
    assert run.readings < 20_000
    assert run.signature.name != "healthy"


def test_an_error_among_very_many_pieces_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OVERWRITTEN_PIECES", 5_000)
    log = read(str(log_of(tmp_path, PIECE * 20_000 + "RuntimeError: CUDA error: boom\r" + PIECE * 1_000)))
    assert [crash.text for crash in log.crashes] == ["RuntimeError: CUDA error: boom"]


def test_a_log_that_takes_long_is_read_with_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", -1.0)
    read(str(log_of(tmp_path, PIECE * 200_000)))
    assert capsys.readouterr().err.splitlines() == [f"reading the log, {share} %" for share in (25, 50, 75)]


def test_the_time_of_overwritten_text_grows_with_its_length(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        path = str(log_of(tmp_path, PIECE * count))
        started = time.process_time()
        read(path)
        return time.process_time() - started

    seconds(100)
    assert seconds(200_000) < 12 * max(seconds(50_000), 0.05)
