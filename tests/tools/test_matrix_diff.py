"""What a change of the matrix changes for environments, on the matrix itself and on the environments kept with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck import matrix
from compatcheck.errors import InputError
from compatcheck.report import render
from tools.matrix.diff import at_revision, compare, read_environments
from tools.matrix.pages import changes

from ..conftest import ROOT, run_command
from ..matrix.test_entries import ENTRY

SOURCES = ROOT / "matrix"
GOOD = SOURCES / "environments"
FALSE_ALARM = (
    ENTRY.replace("training.packing = true\n\n[[rem", "\n[[rem")
    .replace("2.5.0", "2.8.0")
    .replace("2.5.1", "2.9")
    .replace('confidence = "reported"', 'confidence = "corroborated"')
)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A small matrix: the tables and the entries on DeepSpeed."""
    for part in ("tables", "deepspeed"):
        shutil.copytree(SOURCES / part, tmp_path / "old" / part)
    return tmp_path / "old"


@pytest.fixture
def new(old: Path, tmp_path: Path) -> Path:
    """The same, with an entry that calls torch 2.8 bad on its own, one that is gone, and a narrower one."""
    folder = shutil.copytree(old, tmp_path / "new")
    (folder / "torch").mkdir()
    (folder / "torch" / "CC-2026-9999.toml").write_text(FALSE_ALARM, encoding="utf-8")
    (folder / "deepspeed" / "CC-2025-1229.toml").unlink()
    edited = folder / "deepspeed" / "CC-2024-0021.toml"
    text = edited.read_text(encoding="utf-8").replace("[[affected]]", '[[affected]]\ndistributions.peft = "<0.1"', 1)
    edited.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return lambda *arguments, cwd=tmp_path: run_command(sys.executable, "matrix", "diff", *map(str, arguments), cwd=cwd)


def test_no_known_good_environment_is_called_affected() -> None:
    known = matrix.load(str(SOURCES))
    told = []
    for recorded in read_environments([str(GOOD)]):
        found = matrix.judge(known, recorded.environment).findings
        bad = {each.id: each.title for each in found if each.status == "affected"}
        told += [f"{recorded.name}: {id} {title}" for id, title in bad.items() if id not in recorded.proven]
        told += [f"{recorded.name}: {id} is proven and missed" for id in recorded.proven.keys() - bad.keys()]
    assert told == []


def test_the_kept_environments_are_many_and_say_where_they_are_from() -> None:
    recorded = read_environments([str(GOOD)])
    sources = json.loads((GOOD / "sources.json").read_text(encoding="utf-8"))
    assert len(recorded) == len(sources) == len({each.name for each in recorded}) >= 20
    assert all(each.source.startswith("https://github.com/") for each in recorded)
    assert all(len(each.environment.facts["distributions"]) >= 14 for each in recorded)


def test_a_verdict_that_is_new_gone_or_another_is_told(old: Path, new: Path, run: Run) -> None:
    done = run(old, new, "--environments", GOOD)
    assert done.returncode == 1
    assert "added     CC-2026-9999" in done.stdout and "removed   CC-2025-1229" in done.stdout
    lines = done.stdout.splitlines()
    at = lines.index("SkyRL skyrl_train-v0.3.0")
    assert lines[at + 1].split()[:3] == ["+", "affected", "CC-2026-9999"]
    assert any(line.split()[:3] == ["-", "possible", "CC-2025-1229"] for line in lines)
    assert lines[-1].startswith("known-good environments become affected")


def test_a_proven_failure_is_no_alarm(old: Path, new: Path) -> None:
    recorded = read_environments([str(GOOD)])
    sides = [matrix.load(str(each)) for each in (old, new)]
    proven = [each._replace(proven={"CC-2026-9999": "installed and run"}) for each in recorded]
    assert compare(*sides, recorded).alarms and not compare(*sides, proven).alarms


def test_the_same_matrix_changes_nothing(old: Path, run: Run) -> None:
    done = run(old, old, "--environments", GOOD)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        f"no verdict changes in {len(read_environments([str(GOOD)]))} environments",
    )


def test_a_change_to_possible_is_no_alarm(old: Path, new: Path) -> None:
    (new / "torch" / "CC-2026-9999.toml").unlink()
    seen = compare(matrix.load(str(new)), matrix.load(str(old)), read_environments([str(GOOD)]))
    assert {change.after for change in seen.changes} == {"possible"} and not seen.alarms
    assert seen.added == ("CC-2025-1229",) and seen.edited == ("CC-2024-0021",)


def test_what_a_script_reads(old: Path, new: Path, run: Run) -> None:
    told = json.loads(run(old, new, "--environments", GOOD / "known-good.jsonl", "--format", "json").stdout)
    alarms = [change for change in told["changes"] if change["alarm"]]
    assert {change["entry"] for change in alarms} == {"CC-2026-9999"}
    assert (told["schema_version"], told["removed"], told["new"]["entries"] - told["old"]["entries"]) == (
        1,
        ["CC-2025-1229"],
        0,
    )


def test_a_title_cannot_break_out_of_the_table_of_a_pull_request(old: Path, new: Path) -> None:
    entry = new / "torch" / "CC-2026-9999.toml"
    entry.write_text(FALSE_ALARM.replace("Something breaks", "a | [x](http://e) @who <b>"), encoding="utf-8")
    seen = compare(matrix.load(str(old)), matrix.load(str(new)), read_environments([str(GOOD)]))
    row = next(line for line in render(changes.document(seen), "markdown").splitlines() if "CC-2026-9999 a" in line)
    assert "a \\| \\[x\\](http://e) @\u200bwho \\<b\\>" in row and row.replace("\\|", "").count("|") == 6


def test_the_old_side_may_be_a_git_revision(old: Path, new: Path, run: Run, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    kept = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*kept, "init", "-q"], check=True)
    shutil.copytree(old, repository / "matrix")
    subprocess.run([*kept, "add", "."], check=True)
    subprocess.run([*kept, "commit", "-qm", "old"], check=True)
    shutil.rmtree(repository / "matrix")
    shutil.copytree(new, repository / "matrix")
    with at_revision(str(repository / "matrix"), "HEAD") as base:
        assert matrix.load(base).revision == matrix.load(str(old)).revision
    done = run("--base", "HEAD", repository / "matrix", "--environments", GOOD)
    assert done.returncode == 1 and "added     CC-2026-9999" in done.stdout
    with pytest.raises(InputError, match="nowhere"), at_revision(str(repository / "matrix"), "nowhere"):
        pass


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give OLD and NEW"),
        (("a", "b", "c"), "give OLD and NEW"),
        (("--base", "HEAD", "a", "b"), "give OLD and NEW"),
    ],
)
def test_folders_that_are_not_named_are_a_usage_error(run: Run, arguments: tuple[str, ...], told: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2 and told in done.stderr


def test_no_environment_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is none"):
        read_environments([str(tmp_path)])
    (tmp_path / "bad.jsonl").write_text('{"schema_version": 1}\n{"torch"\n', encoding="utf-8")
    with pytest.raises(InputError, match="bad.jsonl, line 2"):
        read_environments([str(tmp_path)])
