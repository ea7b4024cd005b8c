"""`compatcheck ignore`: the user's own file, edited and nothing more."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from compatcheck import settings
from compatcheck.errors import InputError
from compatcheck.settings import Ignore
from tests.settings.conftest import Run

NEW = Ignore("CC-2024-0001", "batch size is 1", date(2999, 1, 31))
BLOCK = '[[tool.compatcheck.ignore]]\nid = "CC-2024-0001"\nreason = "batch size is 1"\nuntil = 2999-01-31\n'
OLD = 'id = "CC-2024-0004"  # the tokenizer\nreason = "old"\nuntil = 2999-01-01\n'


def edited(folder: Path, text: str, ignore: Ignore = NEW) -> str:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8", newline="")
    return settings.with_ignore(str(folder), ignore).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ('[project]\nname = "a"', f'[project]\nname = "a"\n\n{BLOCK}'),
        ("# top\n[tool.black]\nx = 1  # one\n", f"# top\n[tool.black]\nx = 1  # one\n\n{BLOCK}"),
        (
            '[tool.compatcheck]\nfail-on = "possible"\n[tool.zebra]\nx = 1\n',
            f'[tool.compatcheck]\nfail-on = "possible"\n\n{BLOCK}\n[tool.zebra]\nx = 1\n',
        ),
        (
            f"[[tool.compatcheck.ignore]]\n{OLD}\n# zebras\n[tool.zebra]\nx = 1\n",
            f"[[tool.compatcheck.ignore]]\n{OLD}\n{BLOCK}\n# zebras\n[tool.zebra]\nx = 1\n",
        ),
    ],
    ids=["empty", "a project", "other tools", "other settings", "another ignore"],
)
def test_a_table_is_added_and_the_rest_stays(tmp_path: Path, before: str, after: str) -> None:
    assert edited(tmp_path, before) == after


def test_an_array_of_ignores_gets_one_more(tmp_path: Path) -> None:
    row = '{id = "CC-2024-0004", reason = "x", until = 2999-01-01}'
    before = f"[tool.compatcheck]\nignore = [\n    # why\n    {row}, # c\n]\n"
    added = '    {id = "CC-2024-0001", reason = "batch size is 1", until = 2999-01-31},\n]\n'
    assert edited(tmp_path, before) == before.removesuffix("]\n") + added


def test_an_ignore_of_the_same_entry_and_paths_is_replaced_with_its_comment_kept(tmp_path: Path) -> None:
    before = f"[[tool.compatcheck.ignore]]\n{OLD}"
    again = Ignore("CC-2024-0004", "new", date(2999, 2, 2))
    after = before.replace('"old"', '"new"').replace("2999-01-01", "2999-02-02")
    assert edited(tmp_path, before, again) == after
    other = settings.find(str(tmp_path))
    (tmp_path / "pyproject.toml").write_text(edited(tmp_path, before, again._replace(paths=("a.yaml",))))
    assert len(settings.find(str(tmp_path)).ignores) == 2 > len(other.ignores)


@pytest.mark.parametrize(
    "rest",
    ["# zebras\n[tool.zebra]\nx = 1\n", f"[[tool.compatcheck.ignore]]\n{OLD}", ""],
    ids=["another tool", "another ignore", "nothing"],
)
def test_removing_is_the_reverse(tmp_path: Path, rest: str) -> None:
    head = '[project]\nname = "a"\n\n'
    (tmp_path / "pyproject.toml").write_text(head + BLOCK + "\n" * bool(rest) + rest, encoding="utf-8")
    assert settings.without_ignore(str(tmp_path), NEW.id, ()).text == head + rest


def test_line_ends_of_windows_stay(tmp_path: Path) -> None:
    text = edited(tmp_path, '[project]\r\nname = "a"\r\n')
    assert text.count("\r\n") == text.count("\n") and BLOCK.replace("\n", "\r\n") in text


def test_what_cannot_be_edited_safely_is_left_to_the_user(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="by hand"):
        edited(tmp_path, 'tool.compatcheck = { fail-on = "never" }\n')


def test_the_command_adds_and_removes(run: Run, project: Path) -> None:
    before = '[project]\nname = "a"  # mine\n'
    (project / "pyproject.toml").write_text(before, encoding="utf-8")
    below = project / "configs"
    below.mkdir()
    added = run("ignore", "cc-2024-0001", "--reason", "batch size\nis 1", "--until", "2999-01-31", cwd=below)
    assert added.returncode == 0 and "CC-2024-0001 is ignored until 2999-01-31: Masked attention" in added.stdout
    assert (project / "pyproject.toml").read_text(encoding="utf-8") == f"{before}\n{BLOCK}"
    missed = run("ignore", "CC-2024-0001", "--remove", "--path", "a.yaml")
    assert missed.returncode == 2 and "CC-2024-0001 is not ignored in a.yaml there" in missed.stderr
    assert run("ignore", "CC-2024-0001", "--remove").returncode == 0
    assert (project / "pyproject.toml").read_text(encoding="utf-8").strip() == before.strip()


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (("CC-2024-001",), "the matrix has no such entry"),
        (("CC-2024-0001", "--until", "2999-01-01"), "no reason is given"),
        (("CC-2024-0001", "--reason", " ", "--until", "2999-01-01"), "no reason is given"),
        (("CC-2024-0001", "--reason", "x"), "no date is given"),
        (("CC-2024-0001", "--reason", "x", "--until", "tomorrow"), "tomorrow is not a date"),
        (("CC-2024-0001", "--reason", "x", "--until", "2025-01-01"), "2025-01-01 is in the past"),
    ],
)
def test_what_is_no_ignore_is_refused_and_nothing_written(
    run: Run, project: Path, arguments: tuple[str, ...], seen: str
) -> None:
    done = run("ignore", *arguments)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and seen in done.stderr
    assert not (project / "pyproject.toml").exists()
