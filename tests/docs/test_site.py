"""The pages as a site: mkdocs builds them strictly, with a reference that says all that the code has."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from compatcheck import cli, probes
from tests.conftest import ROOT
from tools.matrix.schema import schema

pytestmark = pytest.mark.slow

pytest.importorskip("mkdocs", reason="the extra docs is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def _text(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def _verbs(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from _verbs(below, f"{path} {name}")


def test_every_verb_and_option_is_in_the_reference(site: Path) -> None:
    text = _text(site / "reference" / "commands" / "index.html")
    for path, command in _verbs(cli.cli, "compatcheck"):
        assert path in text
        for option in (name for each in command.params for name in each.opts if name.startswith("--")):
            assert option in text, (path, option)


def test_every_field_and_probe_is_in_the_reference(site: Path) -> None:
    entry, probe = (_text(site / "reference" / name / "index.html") for name in ("entry", "probes"))
    shape = schema()
    for part in (shape, *shape["$defs"].values()):
        assert all(name in entry for name in part.get("properties", ()))
    for name in probes.names():
        assert f"\n{name}" in probe
        assert probes.describe(name)[1] in probe


def test_the_python_interface_is_in_the_reference(site: Path) -> None:
    text = _text(site / "reference" / "python" / "index.html")
    for told in ("budget_seconds", "Judge an environment with", "Pins that fix all problems", "_repr_html_"):
        assert (told in text) is (told != "_repr_html_"), told
