"""The wheel as people get it: built here, installed in a fresh environment, the source tree out of reach."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from compatcheck.verbs.matrix import UPKEEP
from tests.conftest import ROOT, Wheel

HEAVY = {"torch", "transformers", "deepspeed", "pydantic", "httpx", "pynvml"}


def test_the_wheel_carries_every_entry_and_table(wheel: Wheel) -> None:
    with zipfile.ZipFile(wheel.path) as archive:
        names = set(archive.namelist())
        lines = archive.read("compatcheck/matrix/data/entries.jsonl").splitlines()
    authored = {path.stem for path in (ROOT / "matrix").glob("*/CC-*.toml")}
    tables = {path.stem for path in (ROOT / "matrix" / "tables").glob("*.toml")} | {"frameworks"}
    assert {json.loads(line)["id"] for line in lines} == authored
    assert {f"compatcheck/matrix/data/tables/{table}.json" for table in tables} <= names
    assert "compatcheck/py.typed" in names


def test_the_installed_command_runs_away_from_the_sources(wheel: Wheel, tmp_path: Path) -> None:
    done = wheel.run("demo", "--format", "json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert [f["id"] for f in report["findings"] if f["status"] == "affected"] == ["CC-2024-0001"]


def test_what_its_own_environment_lacks_is_not_held_against_the_run(wheel: Wheel, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}', encoding="utf-8")
    (tmp_path / "train.sh").write_text("accelerate launch train.py --deepspeed ds.json --bf16 True\n", encoding="utf-8")
    done = wheel.run("train.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "packages not judged: no environment is active, and there is no .venv" in " ".join(done.stdout.split())
    named = wheel.run("train.sh", "--python", str(wheel.python), cwd=tmp_path)
    assert named.returncode == 1 and "CC-2023-0833" in named.stdout


@pytest.mark.parametrize(
    ("verb", "advice"),
    [
        ("lint", "pass the matrix folder of a checkout"),
        *((verb, "run this command in a clone of the repository") for verb in UPKEEP),
    ],
)
def test_an_installation_names_the_place_of_the_sources(wheel: Wheel, tmp_path: Path, verb: str, advice: str) -> None:
    done = wheel.run("matrix", verb, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"has only the compiled matrix; {advice}" in done.stderr


def test_the_wheel_holds_neither_tools_nor_tests(wheel: Wheel) -> None:
    with zipfile.ZipFile(wheel.path) as archive:
        assert {name.partition("/")[0].partition("-")[0] for name in archive.namelist()} == {"compatcheck"}
        assert not [name for name in archive.namelist() if name.endswith((".md", ".po"))]


def test_a_clean_check_imports_nothing_heavy(wheel: Wheel, tmp_path: Path) -> None:
    code = (
        "import sys, compatcheck.cli as cli\n"
        "sys.argv = ['compatcheck', 'check', '--python', sys.executable]\n"
        "try: cli.main()\n"
        "except SystemExit as stop: print(stop.code, *sys.modules, file=sys.stderr)"
    )
    import subprocess

    done = subprocess.run([str(wheel.python), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    status, *loaded = done.stderr.split()
    assert status == "0", done.stdout
    assert not HEAVY & set(loaded)


def test_a_plain_install_asks_for_the_update_extra(wheel: Wheel, tmp_path: Path) -> None:
    import subprocess

    code = "import importlib.util as found; print(*map(found.find_spec, ('tuf', 'httpx', 'uv', 'huggingface_hub')))"
    held = subprocess.run([str(wheel.python), "-c", code], capture_output=True, text=True, check=True)
    assert held.stdout.split() == ["None"] * 4
    done = wheel.run("matrix", "update", "--url", "https://mirror.example", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "compatcheck: updating the matrix: tuf is not installed; run pip install 'compatcheck[update]'\n"
    )
