"""`compatcheck matrix reproduce` as people type it, on a matrix of one entry and wheels of a few hundred bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..advice.tiny_wheels import write_wheel

ROOT = Path(__file__).parents[2]
ENTRY = """
id = "{id}"
title = "helper 1.0 cannot be imported"
impact = "import-fail"
confidence = "reported"
summary = "s"
mechanism = "m"
published = 2026-01-01
reviewed = 2026-01-01
affected = [{{ distributions.helper = "<1.1" }}]
remedies = [{{ pins = {{ helper = ">=1.1" }}, why = "w" }}]
evidence = [{{ url = "https://example.org/", kind = "report", supports = ["affected"] }}]
examples = [{{ expect = "affected", environment = {{ distributions = {{ helper = "1.0" }} }} }}]
probe = {{ name = "package_imports", request = {{ statements = ["import helper"] }} }}
"""
RECIPE = '\n[reproduce]\npython = "{python}"\nbad = ["helper=={bad}"]\ngood = ["helper=={good}"]\n'
COMMAND = """
import sys
from compatcheck import cli, matrix
load, matrix.load = matrix.load, lambda: load("matrix")
cli.main()
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder with a matrix, wheels and a configuration of uv; no folder of ours may be left in it afterwards."""
    write_wheel(tmp_path / "links", "helper", "1.0", code="import nothing_of_this_name\n")
    write_wheel(tmp_path / "links", "helper", "1.1")
    write_wheel(tmp_path / "links", "helper", "1.2", code="import time\ntime.sleep(600)\n")
    (tmp_path / "uv.toml").write_text("no-index = true\nfind-links = ['links']\n", encoding="utf-8")
    (tmp_path / "matrix" / "tables").mkdir(parents=True)
    (tmp_path / "cache" / "compatcheck").mkdir(parents=True)
    (tmp_path / "temporary").mkdir()
    add(tmp_path, "CC-2099-0001", bad="1.0", good="1.1")
    yield tmp_path
    assert not list(tmp_path.rglob("compatcheck-*"))


def add(project: Path, entry: str, **versions: str) -> None:
    folder = project / "matrix" / "helper"
    folder.mkdir(exist_ok=True)
    recipe = RECIPE.format(python=sys.executable, **versions) if versions else ""
    (folder / f"{entry}.toml").write_text(ENTRY.format(id=entry) + recipe, encoding="utf-8")


def start(project: Path, *arguments: str) -> subprocess.Popen[str]:
    scrubbed = {key: value for key, value in os.environ.items() if not key.startswith(("UV_", "VIRTUAL_ENV"))}
    here = {"XDG_CACHE_HOME": "cache", "TMPDIR": "temporary", "UV_CACHE_DIR": "cache/uv"}
    own = {name: str(project / folder) for name, folder in here.items()}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "matrix", "reproduce", *arguments],
        cwd=project,
        env={**scrubbed, **own, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def run(project: Path, *arguments: str) -> tuple[int, str, str]:
    process = start(project, *arguments)
    stdout, stderr = process.communicate(timeout=120)
    return process.returncode, stdout, stderr


def test_every_entry_with_environments_is_tried_and_recorded(project: Path) -> None:
    add(project, "CC-2099-0002")
    status, stdout, stderr = run(project, "--records", "new/records")
    assert status == 0, stderr
    assert stdout.startswith("reproduced") and "helper 1.0: package_imports fail" in stdout
    (path,) = (project / "new" / "records").iterdir()
    shape = json.loads(path.read_text(encoding="utf-8"))
    assert shape["verdict"] == "reproduced" and shape["command"] == "compatcheck matrix reproduce CC-2099-0001"
    assert str(project) not in path.read_text(encoding="utf-8")


def test_the_exit_status_tells_what_was_not_reproduced_from_what_was_not_tried(project: Path) -> None:
    add(project, "CC-2099-0003", bad="1.1", good="1.1")
    add(project, "CC-2099-0004", bad="1.0", good="7.7")
    status, stdout, _ = run(project, "CC-2099-0001", "CC-2099-0003", "--format", "json")
    assert status == 1
    verdicts = [each["verdict"] for each in json.loads(stdout)["reproductions"]]
    assert verdicts == ["reproduced", "not reproduced"]
    status, stdout, _ = run(project, "CC-2099-0004", "--records", "records")
    assert status == 4 and stdout.startswith("not tried") and "helper==7.7" in stdout
    assert not list((project / "records").iterdir())


@pytest.mark.parametrize(
    "entry, told",
    [
        ("CC-2099-0002", "it has no [reproduce] table; see its evidence with compatcheck explain CC-2099-0002"),
        ("CC-2099-9999", "the matrix has no such entry"),
    ],
)
def test_what_cannot_be_reproduced_is_refused_in_one_line(project: Path, entry: str, told: str) -> None:
    add(project, "CC-2099-0002")
    status, stdout, stderr = run(project, "CC-2099-0001", entry)
    assert (status, stdout, stderr.count("\n")) == (2, "", 1) and told in stderr


@pytest.mark.parametrize("number, expected", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_request_to_stop_while_a_probe_runs_leaves_no_environment(
    project: Path, number: signal.Signals, expected: int
) -> None:
    add(project, "CC-2099-0005", bad="1.2", good="1.1")
    process = start(project, "CC-2099-0005")
    deadline = time.monotonic() + 60
    while not list(project.glob("temporary/compatcheck-probe-*/events.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(project.rglob("compatcheck-environment-*"))
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == expected, stderr
