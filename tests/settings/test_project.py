"""What ``[tool.compatcheck]`` settles, and what becomes of a table that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck import settings
from compatcheck.errors import InputError
from tests.settings.conftest import IGNORE, Run

Settle = Callable[..., None]
FILES = ("--no-probe", "requirements.txt", "train.yaml")


def test_options_that_are_not_given_are_those_of_the_project(run: Run, project: Path, settle: Settle) -> None:
    settle('paths = ["requirements.txt", "train.yaml"]\nprobe = false')
    assert "affected  CC-2024-0001" in run("check").stdout
    settle('paths = ["requirements.txt", "train.yaml"]\nfail-on = "confirmed"\nprobe = false')
    assert run("check").returncode == 0
    assert run("check", "--fail-on", "affected").returncode == 1
    settle('select = ["CC-2024-0004"]')
    assert run("check", *FILES).returncode == 0
    assert "CC-2024-0001" in run("check", *FILES, "--select", "CC-2024-0001").stdout
    assert run("check", *FILES, "--assume", "gpu.compute_capability=8.0").returncode == 0


def test_settings_count_in_every_folder_below_unless_another_file_is_nearer(
    run: Run, project: Path, settle: Settle
) -> None:
    settle(IGNORE)
    below = project / "configs" / "run"
    below.mkdir(parents=True)
    (project / "configs" / "pyproject.toml").write_text('[project]\nname = "compatcheck-of-mine"\n', encoding="utf-8")
    files = ("--no-probe", "../../requirements.txt", "../../train.yaml")
    assert "1 ignored" in run("check", *files, cwd=below).stdout
    assert run("check", *files, "--isolated", cwd=below).returncode == 0  # what is assumed is left out, too
    (below / "pyproject.toml").write_text("[tool.compatcheck]\n", encoding="utf-8")
    assert "ignored" not in run("check", *files, cwd=below).stdout
    named = run("check", *files, "--settings", "../../pyproject.toml", cwd=below)
    assert named.returncode == 0 and "1 ignored" in named.stdout


def test_a_demo_and_a_report_of_someone_else_are_judged_without_the_project(
    run: Run, project: Path, settle: Settle
) -> None:
    settle(IGNORE + '\nfail-on = "never"')
    assert run("demo").returncode == 1
    settle('fail-on = "maybe"')
    assert run("demo").returncode == 1


def test_a_snapshot_speaks_for_its_own_machine(run: Run, project: Path, settle: Settle) -> None:
    settle('paths = ["requirements.txt"]')
    snapshot = {"schema_version": 1, "distributions": {"torch": "2.5.1"}, "distributions_complete": True}
    (project / "node.json").write_text(json.dumps(snapshot), encoding="utf-8")
    done = run("check", "--snapshot", "node.json", "--format", "json")
    environment = json.loads(done.stdout)["environment"]
    assert environment["distributions"] == {"torch": "2.5.1"} and "gpus" not in environment


@pytest.mark.parametrize(
    ("lines", "line", "seen"),
    [
        ("fail-on = 3", 2, "fail-on is 3"),
        ('\nfail_on = "affected"', 3, "there is no setting fail_on"),
        ("select = 'CC-2024-0001'", 2, "select is 'CC-2024-0001'"),
        ("probe = 'no'", 2, "probe is 'no'"),
        ("baseline = []", 2, "baseline is []"),
        ("assume = [", 2, "invalid value"),
        ("ignore = ['CC-2024-0001']", 2, "an ignore is 'CC-2024-0001'"),
        ("[[tool.compatcheck.ignore]]\nreason = 'x'\nuntil = 2999-01-01", 2, "id is missing"),
        ("\n[[tool.compatcheck.ignore]]\nid = 'CC-2024-0001'\nuntil = 2999-01-01", 4, "reason is missing"),
        ("ignore = [{ id = 'CC-2024-0001', reason = '', until = 2999-01-01 }]", 2, "reason is ''"),
        ("ignore = [{ id = 'CC-2024-0001', reason = 'x' }]", 2, "has no until"),
        ("ignore = [{ id = 'CC-2024-0001', reason = 'x', until = 'soon' }]", 2, "until is 'soon'"),
        ("ignore = [{ id = 'CC-2024-0001', reason = 'x', until = '2026-02-30' }]", 2, "until is '2026-02-30'"),
        ("ignore = [{ id = 'CC-2024-0001', reason = 'x', until = 2026-02-30 }]", 2, ""),
        ("ignore = [{ id = 'CC-2024-0001', reason = 'x', until = 2999-01-01, path = 'a' }]", 2, "unknown key path"),
        ("ignore = [\n { id = 'CC-2024-0001', reason = 'x', until = 2999-01-01, paths = 'a' }]", 3, "paths is 'a'"),
    ],
)
def test_a_wrong_table_is_refused(project: Path, settle: Settle, lines: str, line: int, seen: str) -> None:
    settle(lines, assume=False)
    with pytest.raises(InputError) as raised:
        settings.find(str(project))
    assert f"pyproject.toml:{line}: " in str(raised.value) and seen in str(raised.value)


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        ("fail_on = 'affected'", "pyproject.toml:2: there is no setting fail_on"),
        ("assume = ['gpu.colour=red']", "pyproject.toml:2: assume holds gpu.colour=red"),
        ("select = ['CC-1999-0001']", "pyproject.toml: select names CC-1999-0001: the matrix has no such entry"),
        (IGNORE.replace("2024", "1999"), "pyproject.toml:2: CC-1999-0001 is ignored there, and the matrix has no"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(run: Run, project: Path, settle: Settle, lines: str, seen: str) -> None:
    settle(lines, assume=False)
    done = run("check", *FILES)
    assert done.returncode == 2 and not done.stdout
    assert len(done.stderr.splitlines()) == 1 and seen in done.stderr


def test_a_project_file_that_does_not_name_us_is_not_parsed(run: Run, project: Path) -> None:
    (project / "pyproject.toml").write_bytes(b"\xff[broken")
    assert run("check", *FILES).returncode == 0
    (project / "pyproject.toml").write_bytes(b"\xff[tool.compatcheck]")
    done = run("check", *FILES)
    assert done.returncode == 2 and "pyproject.toml: byte 0 is not UTF-8" in done.stderr
    assert run("check", *FILES, "--isolated").returncode == 0


@pytest.mark.parametrize(
    ("text", "kind"),
    [("[tool]\ncompatcheck = 3\n", "is not a table"), ("[tool.other]\nx = 'compatcheck'\n", "there is no table")],
)
def test_settings_that_are_named_must_be_there(tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=kind):
        settings.read(str(tmp_path / "pyproject.toml"))


def test_a_check_without_settings_loads_nothing_to_parse_them(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import sys; from compatcheck import settings; settings.find(); print(*sys.modules)"
    (tmp_path / "pyproject.toml").write_text("[tool.black]\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not {"tomllib", "tomlkit", "pydantic"} & set(done.stdout.split())
