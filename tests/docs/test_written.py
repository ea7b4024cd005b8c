"""What is written by hand says what the code has: keys of reports and settings, exit statuses, links."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from compatcheck import errors, settings
from compatcheck.environment import Unknown
from compatcheck.inference.inferred import Inference, Inferred
from compatcheck.report.shapes import inferred_shape
from compatcheck.results import exit_status
from tests.conftest import ROOT, run_command
from tests.docs.sessions import PAGES
from tools import limits_page


def _rows(name: str) -> set[str]:
    """The words in the first cells of the tables on a page of the reference."""
    text = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| ([^|]+) \|(?!.*\n\|---)", text, re.M)
    return {part.strip(" `") for cell in cells for part in cell.split(",")}


def _taken(path: Path, text: str) -> set[str]:
    """The keys that the refusal of one that is none says there are."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(errors.InputError) as refused:
        settings.read(str(path))
    return set(re.sub(r".* (settings|keys) are ", "", str(refused.value)).split(", "))


def test_the_limits_are_those_of_the_code() -> None:
    assert limits_page.PAGE.read_text(encoding="utf-8") == limits_page.page(), "run python -m tools.limits_page"


def test_the_settings_are_those_that_are_taken(tmp_path: Path) -> None:
    variables = {name for name in _rows("settings") if name.isupper() or "=" in name}
    ignore = "[[tool.compatcheck.ignore]]\nid = 'CC-2024-0001'\nreason = 'a'\nuntil = 2030-01-01\nnone = 1\n"
    path = tmp_path / "pyproject.toml"
    assert _rows("settings") - variables == _taken(path, "[tool.compatcheck]\nnone = 1\n") | _taken(path, ignore)


def test_the_exit_statuses_are_those_of_the_code() -> None:
    kinds = (errors.CompatcheckError, *errors.CompatcheckError.__subclasses__())
    known = {value for value in vars(exit_status).values() if isinstance(value, int)} | {
        each.exit_status for each in kinds
    }
    assert {int(row) for row in _rows("exit-status") if row.isdigit()} == known


def test_the_keys_of_the_report_are_those_of_the_command(tmp_path: Path) -> None:
    report = json.loads(run_command(sys.executable, "demo", "--format", "json", cwd=tmp_path).stdout)
    inferred = inferred_shape(Inferred({"a": Inference(1, "why", ()), "b": Inference(Unknown(), "why", ())}))
    shown = {*report, *report["areas"][0], *report["findings"][0]}.union(*inferred.values())
    assert _rows("report") == shown
    text = (ROOT / "docs" / "reference" / "report.md").read_text(encoding="utf-8")
    for part in (report["matrix"], report["findings"][0]["remedies"][0]):
        assert all(f"`{key}`" in text for key in part), part


def test_pages_name_what_is_there() -> None:
    """Links of the README and of pages that GitHub shows as well; mkdocs holds those within the site."""
    generated = {"commands.md", "entry.md", "probes.md"}
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert Path(target).name in generated or (page.parent / target).exists(), (page, target)
