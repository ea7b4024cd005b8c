"""`compatcheck explain` as people type it: the page, the pager, and what is offered for a name that is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compatcheck.report import render
from compatcheck.report.subjects import explanation
from compatcheck.terminal.cells import cells
from compatcheck.terminal.screen import Screen
from tests.conftest import ROOT, run_command
from tests.report.test_reports import entries, undrawn

GLM = "CC-2024-0001"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, *arguments, cwd=ROOT)


def test_a_page_says_what_each_source_bears_out_and_what_can_be_copied() -> None:
    page = run("explain", GLM).stdout
    assert "\n  1. torch>=2.5.1\n     2.5.1 makes cuDNN attention opt-in again" in page
    assert "pull/138522\n    the fix upstream; supports: when it applies, option 1\n" in page
    assert "Applies when\n  torch >=2.5.0,<2.5.1\n  cuda.runtime is present\n" in page


@pytest.mark.parametrize("width", [40, 80])
def test_every_entry_fits_the_terminal(width: int) -> None:
    drawn = Screen(width, is_terminal=True, colour=True, links=True)
    for entry in entries():
        rows = undrawn(
            render(explanation.document(entry, ("a probe", "") if entry.get("probe") else ()), "text", drawn)
        )
        too_wide = [row for row in rows if cells(row) > width and max(map(cells, row.split())) < width - 6]
        assert too_wide == [], entry["id"]


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("CC-2014-0001", "did you mean CC-2024-0001"),
        ("cc-2024-001", "CC-2024-0"),
        ("CC-1999-9999", "`compatcheck matrix search` finds"),
        ("matmuul", "did you mean matmul?"),
        ("overlap_comm", "compatcheck matrix search overlap_comm"),
        ("no-such-word", "`compatcheck matrix search` finds"),
    ],
)
def test_a_name_that_is_none_is_answered_with_those_near_it(name: str, offered: str) -> None:
    done = run("explain", name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert name in done.stderr and offered in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a pseudo-terminal is one of POSIX")
@pytest.mark.parametrize(
    ("rows", "options", "environ", "paged"),
    [
        (24, [], {}, True),
        (24, ["--no-pager"], {}, False),
        (24, [], {"PAGER": "cat"}, False),
        (24, [], {"TERM": "dumb"}, False),
        (200, [], {}, False),
    ],
)
def test_a_page_longer_than_the_terminal_goes_through_the_pager(
    rows: int, options: list[str], environ: dict[str, str], paged: bool, tmp_path: Path
) -> None:
    import pty
    import termios

    pager = tmp_path / "pager"
    pager.write_text(f'#!/bin/sh\necho "$LESS" > {tmp_path / "used"}\ncat\n')
    pager.chmod(0o755)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (rows, 80))
    scrubbed = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "LESS", "NO_COLOR")}
    command = [sys.executable, "-m", "compatcheck", "explain", GLM, *options]
    told = b""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        env={**scrubbed, "TERM": "xterm", "PAGER": str(pager), **environ},
    ) as process:
        os.close(theirs)
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break
            told += chunk
    os.close(ours)
    assert process.returncode == 0 and b"Commands to run" in told
    assert (tmp_path / "used").exists() == paged
    assert not paged or (tmp_path / "used").read_text() == "FRX\n"
