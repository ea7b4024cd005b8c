"""Which matrix a check reads once one was fetched: never a broken one, and never an older one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck import matrix, probes
from compatcheck.environment import Environment
from compatcheck.installed.target import find_target
from compatcheck.matrix import loading
from compatcheck.matrix.compile import write_compiled
from compatcheck.pipelines.check import confirm
from compatcheck.results.findings import Finding, Report
from tests.delivery.conftest import IDS, Answer, Client, Publisher, run

Damage = Callable[[Path, Path], None]


def fetched_folder(data: Path) -> Path:
    return next((data / "revisions").iterdir())


def in_pointer(**changed: object) -> Damage:
    def damage(data: Path, _: Path) -> None:
        pointer = data / "current.json"
        pointer.write_text(json.dumps({**json.loads(pointer.read_text("utf-8")), **changed}), encoding="utf-8")

    return damage


def index_of_another_form(_: Path, folder: Path) -> None:
    index = folder / "index.json"
    told = {**json.loads(index.read_text("utf-8")), "format": loading.FORMAT + 1}
    index.write_text(json.dumps(told), encoding="utf-8")


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda data, folder: (folder / "index.json").unlink(), "index.json"),
        (lambda data, folder: (folder / "index.json").write_text('{"format":1,'), "index.json"),
        (lambda data, folder: (folder / "entries.jsonl").unlink(), "entries.jsonl"),
        (lambda data, folder: (data / "current.json").write_text('{"format'), "current.json"),
        (lambda data, folder: (data / "current.json").write_text("[]"), "current.json"),
        (in_pointer(folder="gone"), "gone"),
        (index_of_another_form, f"the format is {loading.FORMAT + 1}"),
    ],
)
def test_a_broken_one_is_told_and_the_bundled_one_stands_in(
    client: Client, data: Path, damage: Damage, said: str
) -> None:
    client.update()
    damage(data, fetched_folder(data))
    answer = run("list")
    told, *listed = sorted(answer.text.splitlines(), key=lambda line: not line.startswith("compatcheck:"))
    assert said in told and "run compatcheck matrix update" in told and "using the bundled matrix instead" in told
    assert [line.split()[0] for line in listed] == IDS[:1]
    assert "now in use" in client.update().text
    assert client.listed() == IDS[:2]


def test_damage_that_shows_later_is_told_with_what_mends_it(client: Client, data: Path) -> None:
    client.update()
    entries = fetched_folder(data) / "entries.jsonl"
    entries.write_bytes(entries.read_bytes()[:100])
    answer = run("list")
    assert answer.status == 5 and "run compatcheck matrix update" in answer.text
    assert "now in use" in client.update().text
    assert client.listed() == IDS[:2]


@pytest.mark.parametrize(
    "damage",
    [in_pointer(format=loading.FORMAT + 1), in_pointer(date="2020-01-01")],
    ids=["another form", "an older date"],
)
def test_one_that_does_not_fit_is_passed_over(client: Client, data: Path, damage: Damage) -> None:
    client.update()
    damage(data, fetched_folder(data))
    assert client.listed() == IDS[:1]


def test_an_upgrade_brings_a_newer_one(
    client: Client, matrices: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.update()
    write_compiled(matrices[3], tmp_path / "newer")
    monkeypatch.setattr(loading, "_COMPILED", str(tmp_path / "newer"))
    assert client.listed() == IDS
    assert "stays in use" in client.update().text


def test_sources_that_are_named_count_as_they_are(client: Client, matrices: dict[int, Path]) -> None:
    client.update()
    assert matrix.load(str(matrices[3])).entries == 3


def test_a_probe_of_a_later_version_leaves_its_finding(client: Client, publisher: Publisher) -> None:
    finding = Finding("CC-2026-0001", "x", "affected", "hang", "reported", ("torch",), "x", (), (), ())
    report = Report(Environment({}), (finding._replace(probe_name="from_the_future"),), "abc", 1)
    assert "from_the_future" not in probes.names()
    assert confirm(report, find_target(sys.executable, {})).findings == report.findings


def test_nothing_is_written_by_reading(client: Client, data: Path) -> None:
    assert run("list") == Answer(0, run("list").text)
    assert not data.exists()
