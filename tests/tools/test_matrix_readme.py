"""`matrix/README.md` says what the code says: its fields are the model's, and its walk is what the commands print."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compatcheck import matrix, probes
from compatcheck.report import render
from tests.conftest import ROOT, SOURCES, run_command
from tools.matrix import draft
from tools.matrix.diff import compare, read_environments
from tools.matrix.pages import changes
from tools.matrix_readme import README, fields, replaced

TEXT = README.read_text(encoding="utf-8")
ISSUE = ROOT / "tests" / "tools" / "issues" / "kernels-import.md"


def part(name: str) -> str:
    return TEXT.partition(f"<!-- {name} -->\n")[2].partition("<!-- end -->")[0]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A matrix of tables alone in which the walk's draft was made, and what making it printed."""
    folder = tmp_path_factory.mktemp("walk")
    shutil.copytree(SOURCES / "tables", folder / "matrix" / "tables")
    arguments = ("matrix", "new", "--from-issue", str(ISSUE), "-o", "matrix")
    return folder / "matrix", run_command(sys.executable, *arguments, cwd=folder)


def test_the_fields_are_those_of_the_model() -> None:
    assert replaced(TEXT, "fields", fields()) == TEXT, "run: python tools/matrix_readme.py"


def test_the_walk_prints_what_new_prints(walk: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = walk
    printed = (done.stdout + done.stderr).replace(" lint matrix", " lint").replace(" main matrix", " main")
    year = re.search(r"CC-(\d{4})-0001", printed)
    assert year and printed.replace(f"CC-{year[1]}", "CC-2026").splitlines() == part("new").splitlines()[3:-1]


def test_the_walk_shows_the_draft(walk: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    (path,) = walk[0].glob("*/CC-*.toml")
    assert part("draft").removeprefix("```toml\n").removesuffix("```\n") in path.read_text(encoding="utf-8")


def test_the_walk_shows_what_lint_and_diff_say(
    walk: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    folder, _ = walk
    shutil.copytree(SOURCES / "tables", tmp_path / "old" / "tables")
    faults, _ = matrix.lint_folder(str(folder), probes.names())
    known = [matrix.load(str(side)) for side in (tmp_path / "old", folder)]
    seen = render(changes.document(compare(*known, read_environments([str(SOURCES / "environments")]))), "text")
    shown = part("lint").splitlines()
    assert [line for line in shown if line.startswith("CC-")] == [f"CC-2026{f.id[7:]}: {f.text}" for f in faults]
    told = shown[shown.index("...") + 1 : -1]
    assert re.sub(r"CC-\d{4}", "CC-2026", seen).splitlines()[-len(told) :] == told


def test_what_the_page_names_is_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (README.parent / target).exists(), target
    assert draft.next_id(str(SOURCES), 2026) > "CC-2026-0790"
