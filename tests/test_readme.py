"""What the README shows is what the commands print, and no page speaks of an option that there is not."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from compatcheck import cli
from tests.conftest import ROOT, run_command
from tests.docs.sessions import PAGES


def test_the_first_screen_is_what_the_demo_prints(tmp_path: Path) -> None:
    shown = re.search(
        r"<!-- demo -->\n```console\n\$ compatcheck demo\n(.*?)```\n", (ROOT / "README.md").read_text("utf-8"), re.S
    )
    assert shown is not None
    printed = run_command(sys.executable, "demo", cwd=tmp_path).stdout
    assert masked(shown[1]) == masked(printed)


def masked(text: str) -> str:
    """The matrix's revision, date and size change with every entry."""
    return re.sub(r"matrix [0-9a-f]{12}( of [0-9-]{10})?, \d+ entries", "matrix", text)


def _help(command: click.Command) -> Iterator[str]:
    """What a verb says of itself, and each verb below it."""
    context = click.Context(command)
    yield command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _help(below)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_option_that_is_written_of_exists(page: Path) -> None:
    helped = "".join(_help(cli.cli))
    for option in re.findall(r"--[a-z][a-z-]+", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)):
        assert option in helped, option
