"""What is written by hand says what the code has: keys of reports and settings, exit statuses, links."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import click
import pytest

from compatcheck import errors, settings
from compatcheck.cli import cli
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
    return set(re.findall(r"`([\w-]+)`", re.sub(r".* (settings|keys) are ", "", str(refused.value))))


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


WRITING = {"--output", "--report", "--write", "--draft", "--record", "--svg", "--snapshot-out", "--trust"}
"""Options that make a file, as the table of what is written names them."""


def _promises() -> dict[str, list[str]]:
    """The row of each verb in the table of what it reads, runs, writes and sends."""
    text = (ROOT / "docs" / "explanation" / "limits.md").read_text(encoding="utf-8")
    found = {}
    for line in text.partition("| command | reads |")[2].partition("\n\n")[0].splitlines()[2:]:
        first, *cells = line.strip("| ").split(" | ")
        found.update(dict.fromkeys(re.findall(r"`([a-z ]+)`", first), cells))
    return found


def _verbs() -> dict[str, click.Command]:
    context = click.Context(cli)
    verbs = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    group = verbs.pop("matrix")
    assert isinstance(group, click.Group)
    below = {f"matrix {name}": group.get_command(context, name) for name in group.list_commands(context)}
    return {name: verb for name, verb in (verbs | below).items() if verb and not verb.hidden}


def test_each_verb_says_what_it_reads_runs_writes_and_sends() -> None:
    assert _promises().keys() == _verbs().keys()
    assert all(len(cells) == 4 and all(cells) for cells in _promises().values())


@pytest.mark.parametrize("name", sorted(_verbs()))
def test_what_a_verb_can_write_and_whom_it_can_ask_is_promised(name: str) -> None:
    options = {text for each in _verbs()[name].params for text in each.opts if text.startswith("--")}
    _, runs, writes, sends = _promises()[name]
    named = {"-o": "--output"}
    said = {named.get(text, text) for text in re.findall(r"`(-[-a-z]+)", writes)}
    missing = {each for each in options & WRITING if each not in said and f"{each}`" not in writes}
    assert not missing, writes
    assert ("--online" in options) == ("`--online`" in sends)
    assert ("--resolve" in options) == ("`--resolve`" in sends and "`--resolve`" in runs)
    assert ("--trust-remote-code" in options) == ("`--trust-remote-code`" in runs)
