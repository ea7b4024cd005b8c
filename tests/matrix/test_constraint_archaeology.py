"""What a history of caps and checks says about the releases before, read from a repository made here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit

from tools.tables import _history, constraint_archaeology
from tools.tables._history import Constraint

SETUP = """raise SystemExit("never run")
setup(install_requires=[{requires}], extras_require={{"gpu": ["triton>=2.0; sys_platform == 'linux'"]}})
"""
TRAINER = """PEFT_MIN_VERSION = "0.10.0"
if version.parse(importlib.metadata.version("peft")) < version.parse("{peft}"):
    raise ImportError
"""


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three releases: a cap appears in the second and is gone in the third, which checks peft."""
    folder = tmp_path_factory.mktemp("package")
    git(folder, "init", "-q")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text("require_version('torch>=9')\n")
    for tag, requires, peft in (
        ("v0.9.0", "'transformers>=4.30'", None),
        ("v0.10.0", "'transformers>=4.30,<4.47.0'", None),
        ("v0.10.1rc1", "'transformers==1.0'", None),
        ("v0.11.0", "'transformers>=4.30', 'numpy!=2.0.0'", "0.12.0"),
    ):
        (folder / "setup.py").write_text(SETUP.format(requires=requires))
        if peft:
            (folder / "trainer.py").write_text(TRAINER.format(peft=peft))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"Require {requires}")
        git(folder, "tag", tag)
    return folder / ".git"


def test_a_cap_that_comes_and_goes_speaks_of_all_releases_before_its_end(repository: Path) -> None:
    found = {life.constraint: life for life in constraint_archaeology.lives(repository)}
    cap = found[Constraint("transformers", "<4.47.0", "declares")]
    assert (cap.before, cap.since, cap.until) == ("v0.9.0", "v0.10.0", "v0.11.0")
    assert cap.commit and cap.commit.subject == "Require 'transformers>=4.30,<4.47.0'"
    assert constraint_archaeology.concerned(cap) == ("<0.11.0", ">=4.47.0")
    exclude = found[Constraint("numpy", "!=2.0.0", "declares")]
    assert constraint_archaeology.concerned(exclude) == ("<0.11.0", "==2.0.0")
    assert {constraint.name for constraint in found} == {"transformers", "numpy", "peft"}


def test_a_check_in_code_speaks_of_the_releases_that_have_it(repository: Path) -> None:
    least, compared = sorted(constraint_archaeology.lives(repository, ["peft"]))[::-1]
    assert least.constraint == Constraint("peft", ">=0.10.0", "requires")
    assert constraint_archaeology.concerned(least) == (">=0.11.0", "<0.10.0")
    assert compared.constraint == Constraint("peft", "<0.12.0", "compares")
    assert constraint_archaeology.concerned(compared) is None
    assert (compared.path, compared.until) == ("trainer.py", None)


def test_the_command_prints_lines_and_writes_drafts(repository: Path, tmp_path: Path) -> None:
    script = Path(constraint_archaeology.__file__)
    command = [sys.executable, str(script), str(repository), "--package", "some-trainer", "--drafts", str(tmp_path)]
    address = ["--address", "https://example.org/some-trainer", "--of", "transformers"]
    done = subprocess.run([*command, *address], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("v0.10.0 declares transformers<4.47.0 in setup.py, gone in v0.11.0; ")
    (path,) = tmp_path.glob("*.toml")
    entry = tomlkit.parse(path.read_text()).unwrap()
    assert entry["affected"] == [{"distributions": {"some-trainer": "<0.11.0", "transformers": ">=4.47.0"}}]
    assert entry["evidence"][0]["url"].startswith("https://example.org/some-trainer/commit/")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('require_version("torch>=1.5.0")', [Constraint("torch", ">=1.5.0", "requires")]),
        ('ACCELERATE_MIN_VERSION = "0.26.0"', [Constraint("accelerate", ">=0.26.0", "requires")]),
        ('TORCHAO_MINIMUM_VERSION = packaging.version.parse("0.4.0")', [Constraint("torchao", ">=0.4.0", "requires")]),
        ('if not is_peft_available("0.12"):', [Constraint("peft", ">=0.12", "requires")]),
        ("if version.parse(torch.__version__) < version.parse('2.1'):", [Constraint("torch", "<2.1", "compares")]),
        ("if version.parse(found) < version.parse(least):", []),
    ],
)
def test_the_forms_in_which_code_asks_for_a_version(line: str, expected: list[Constraint]) -> None:
    assert list(_history.checked(line)) == expected


def test_plain_files_name_one_requirement_to_a_line() -> None:
    text = "torch>=2.0,<2.6  # later ones crash\n-r other.txt\npeft\n    datasets!=2.5.0 ; python_version > '3.8'\n"
    clauses = {(constraint.name, constraint.clause) for constraint in _history.declared(text, plain=True)}
    assert clauses == {("torch", ">=2.0"), ("torch", "<2.6"), ("datasets", "!=2.5.0")}
