"""What the README shows is what the commands print, and no page speaks of an option that there is not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from compatcheck import cli
from tests.conftest import ROOT, run_command
from tests.docs.sessions import PAGES, agrees

README = ROOT / "README.md"


def test_first_screen_is_what_the_command_prints(tmp_path: Path) -> None:
    """A project folder of the reader's kind, judged as it stands."""
    shown = re.search(
        r"<!-- first screen -->\n```console\n.*?\$ compatcheck \.\n(.*?)```\n", README.read_text("utf-8"), re.S
    )
    assert shown is not None
    folder = shutil.copytree(ROOT / "docs/tutorial/script", tmp_path / "finetune")
    printed = run_command(sys.executable, ".", cwd=folder)
    assert printed.returncode == 1
    assert agrees(shown[1], printed.stdout), printed.stdout


@pytest.mark.network
def test_setup_command_judges_a_project() -> None:
    """What a reader with Python and git alone types first, in a home without anything."""
    done = subprocess.run([ROOT / ".ci" / "try"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_has_to_be_filled_in() -> None:
    """No page or workflow holds a placeholder for whoever hosts this."""
    listed = subprocess.run(
        ["git", "grep", "-nI", "-e", f"{'OWNER'}/", "--", ":!matrix"], cwd=ROOT, capture_output=True, text=True
    )
    assert listed.stdout == ""


def _help(command: click.Command) -> Iterator[str]:
    """What a verb says of itself, and each verb below it."""
    yield CliRunner().invoke(command, ["--help" if isinstance(command, click.Group) else "--help-all"]).stdout
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _help(below)


_OF_OTHERS = ("--no-deps", "--kinds")
"""Options of pip and of `tools.sweep`."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_option_that_is_written_of_exists(page: Path) -> None:
    helped = "".join(_help(cli.cli))
    for option in re.findall(r"--[a-z][a-z-]+", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)):
        assert option in helped or option in _OF_OTHERS, option
