"""`compatcheck cluster --snapshots`: the machines of a folder, grouped, compared and judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from compatcheck.cluster import _digest
from tests.conftest import run_command

H100 = {"name": "NVIDIA H100", "compute_capability": "9.0", "memory_mib": 81920}
NODE: dict[str, Any] = {
    "schema_version": 1,
    "python": "3.11.7",
    "distributions": {"torch": "2.5.0+cu118", "transformers": "4.48.0"},
    "distributions_complete": True,
    "cuda": {"runtime": "11.8", "driver": "535.104.05", "nccl": "2.21.5"},
    "gpus": [{**H100, "uuid": "GPU-1"}],
    "environ": {"NCCL_DEBUG": "INFO"},
    "model": {"files": {"modeling_chatglm.py": {"sha256": "a" * 64}}},
}


def write(folder: Path, name: str, snapshot: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(snapshot), encoding="utf-8")


def judged(folder: Path, *options: str) -> tuple[int, str]:
    done = run_command(sys.executable, "cluster", "--snapshots", str(folder), *options, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_what_the_project_ignores_in_every_file_is_ignored(tmp_path: Path) -> None:
    training = {"attention": "sdpa", "per_device_train_batch_size": 2, "dtype": "bfloat16"}
    write(tmp_path, "node01", {**NODE, "training": training})
    assert "CC-2024-0001" in judged(tmp_path)[1]
    table = '[[tool.compatcheck.ignore]]\nid = "CC-2024-0001"\nreason = "packed"\nuntil = 2999-01-01\n'
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    assert "CC-2024-0001" not in judged(tmp_path)[1]
    assert "CC-2024-0001" in judged(tmp_path, "--isolated")[1]


@pytest.fixture
def sixteen(tmp_path: Path) -> Path:
    """Fourteen nodes that differ in what is their own, and two that differ in what counts."""
    for number in range(1, 17):
        own = {
            "gpus": [{**H100, "uuid": f"GPU-{number}"}],
            "target": {"prefix": f"/n{number}", "selected_by": "test"},
            "environ": {**NODE["environ"], "LOCAL_RANK": str(number % 8), "SLURM_PROCID": str(number)},
        }
        other = {
            "distributions": {**NODE["distributions"], "torch": "2.5.1+cu118"},
            "cuda": {**NODE["cuda"], "driver": "550.54.15"},
            "environ": {},
            "model": {"files": {"modeling_chatglm.py": {"sha256": "b" * 64}}},
        }
        write(tmp_path, f"node{number:02}", {**NODE, **own, **(other if number in (7, 12) else {})})
    return tmp_path


def test_nodes_that_differ_are_named_with_what_they_differ_in(sixteen: Path) -> None:
    status, text = judged(sixteen)
    assert status == 1
    assert "2 nodes B: node07, node12" in text
    assert "14 nodes A: node01, node02, node03" in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "distributions.torch A: 2.5.0+cu118; B: 2.5.1+cu118" in lines
    assert "cuda.driver A: 535.104.05; B: 550.54.15" in lines
    assert "environ.NCCL_DEBUG A: INFO; B: not set" in lines
    assert f"model.files.modeling_chatglm.py.sha256 A: {'a' * 12}; B: {'b' * 12}" in lines
    assert "uuid" not in text


def test_findings_stand_with_the_group_that_has_them(sixteen: Path) -> None:
    shape = json.loads(judged(sixteen, "--format", "json")[1])
    own = {group["label"]: {finding["id"] for finding in group["findings"]} for group in shape["groups"]}
    assert "CC-2024-0001" in own["A"] - own["B"]
    assert [len(group["nodes"]) for group in shape["groups"]] == [14, 2]
    assert {finding["id"] for finding in shape["findings"]}.isdisjoint(own["A"] | own["B"])
    values = {".".join(each["path"]): each["values"] for each in shape["differences"]}
    assert values["environ.NCCL_DEBUG"] == [{"groups": ["A"], "value": "INFO"}, {"groups": ["B"], "value": None}]


def test_nodes_that_are_alike_are_clean(tmp_path: Path) -> None:
    fine = {**NODE, "distributions": {"numpy": "2.0.0"}, "model": None}
    for name in ("a", "b", "c"):
        write(tmp_path, name, fine)
    status, text = judged(tmp_path, "--ignore", "CC-2024-0001")
    assert (status, "3 nodes (snapshots in" in text, "all alike" in text) == (0, True, True), text


def test_a_file_that_cannot_be_read_is_named_beside_the_others(tmp_path: Path) -> None:
    write(tmp_path, "fine", NODE)
    (tmp_path / "torn.json").write_text('{"schema_version": 1,', encoding="utf-8")
    status, text = judged(tmp_path)
    assert status == 1
    assert "unread         torn: reading JSON from" in text


def test_an_unknown_fact_is_not_an_absent_one(tmp_path: Path) -> None:
    write(tmp_path, "full", NODE)
    write(tmp_path, "poor", {**NODE, "gpus": None, "cuda": {"runtime": "11.8"}})
    lines = [" ".join(line.split()) for line in judged(tmp_path)[1].splitlines()]
    assert "cuda.driver A: 535.104.05; B: not known" in lines
    assert any(line.startswith("gpus ") for line in lines)


@pytest.mark.parametrize("format_name", ["text", "json", "html", "markdown"])
def test_differences_show_no_secret(format_name: str, tmp_path: Path) -> None:
    for number in "12":
        secret = f"Zq3vX9SECRETk7LmW{number}"
        cuda = {**NODE["cuda"], "token": secret, "api.key": secret}
        environ = {"NCCL_TOKEN": secret, "a": f"ya29.{secret}-{secret}", f"ghp_{secret}": number}
        write(tmp_path, f"node{number}", {**NODE, "cuda": cuda, "environ": environ, "training": {"key": secret}})
    status, text = judged(tmp_path, "--format", format_name)
    assert status == 1 and "node2" in text and "SECRET" not in text


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_a_folder_without_snapshots_is_a_mistake_in_one_line(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    done = run_command(sys.executable, "cluster", "--snapshots", folder, cwd=tmp_path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_what_is_a_machines_own_does_not_tell_it_apart() -> None:
    other = {**NODE, "gpus": [{**H100, "uuid": "GPU-2"}], "unknown": {"training": "none given"}, "node": {"name": "x"}}
    assert _digest.digest(other) == _digest.digest(NODE)
    assert _digest.digest({**NODE, "gpus": [H100, H100]}) != _digest.digest(NODE)


def test_a_name_without_end_and_a_rank_that_is_none_are_bounded(tmp_path: Path) -> None:
    for number, node in enumerate(({"name": "a" * 100_000, "rank": -5}, {"name": "b", "rank": 10**30})):
        write(tmp_path, f"n{number}", {"schema_version": 1, "distributions": {"torch": "2.5.0"}, "node": node})
    _, text = judged(tmp_path)
    assert "a" * 255 in text and "a" * 256 not in text and str(10**30) not in text
