"""Text by the cells it takes, and what is drawn on which stream."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.terminal.cells import cells, fold, padded
from compatcheck.terminal.screen import PLAIN, Screen, screen
from tests.conftest import ROOT


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.text("abc-,. ", max_size=200), st.integers(1, 40))
def test_text_in_latin_is_folded_as_textwrap_folds_it(text: str, width: int) -> None:
    flat = " ".join(text.split())
    rows = textwrap.wrap(flat, width, break_long_words=False, break_on_hyphens=False)
    assert fold(text, width) == (rows or [""])


def test_a_chinese_full_stop_holds_its_own_space() -> None:
    assert fold("前向与反向。 需要 torch>=2.0。", 80) == ["前向与反向。需要 torch>=2.0。"]


@given(st.text("中文标签，。（）a1 b", max_size=120), st.integers(4, 40))
def test_chinese_is_folded_between_its_letters(text: str, width: int) -> None:
    rows = fold(text, width)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")
    breakable = all(each not in text for each in "，。（）")
    assert not breakable or all(cells(row) <= width for row in rows if " " in row or not row.isascii())


@given(st.text(max_size=60), st.integers(4, 40), st.integers(1, 40))
def test_every_letter_is_kept_and_none_steers_the_terminal(text: str, width: int, first: int) -> None:
    joined = "".join(fold(text, width, min(first, width)))
    assert all(each in joined for each in text if each.isalnum())
    assert not any(each < " " or "\x7f" <= each <= "\x9f" for each in joined)


def test_punctuation_stands_with_what_it_belongs_to() -> None:
    assert fold("损失为零，因为标签（全部）被掩码。", 10) == ["损失为零，", "因为标签", "（全部）被", "掩码。"]
    assert fold("使用 torch>=2.5.1 可以修复这个问题", 18) == ["使用 torch>=2.5.1", "可以修复这个问题"]


def test_cells_are_those_of_a_terminal() -> None:
    assert [cells(each) for each in ("abc", "中文", "e\u0301", "ﾃｽﾄ", "한국", "🚀")] == [3, 4, 1, 3, 4, 2]
    assert padded("中文", 6) == "中文  "


@pytest.mark.parametrize(
    ("environ", "colour"),
    [
        ({}, True),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"CLICOLOR": "0"}, False),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colour_on_a_terminal(environ: dict[str, str], colour: bool) -> None:
    assert screen(Terminal(), {"COLUMNS": "90", **environ}) == Screen(90, True, colour, False)


@pytest.mark.parametrize(
    ("environ", "colour"),
    [
        ({"COLUMNS": "40", "FORCE_HYPERLINK": "1"}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": ""}, False),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR_FORCE": "0"}, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_a_pipe_is_as_wide_everywhere_and_has_no_links(environ: dict[str, str], colour: bool) -> None:
    assert screen(io.StringIO(), environ) == PLAIN._replace(colour=colour)


@pytest.mark.parametrize(
    ("environ", "links"),
    [
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"VTE_VERSION": "5000"}, False),
        ({"VTE_VERSION": "7600"}, True),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"FORCE_HYPERLINK": "1"}, True),
        ({"FORCE_HYPERLINK": "0", "VTE_VERSION": "7600"}, False),
        ({"FORCE_HYPERLINK": "1", "TERM": "dumb"}, False),
    ],
)
def test_links_where_the_terminal_says_that_it_follows_them(environ: dict[str, str], links: bool) -> None:
    assert screen(Terminal(), environ).links == links


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "gbk", "utf-8"])
def test_what_an_encoding_lacks_is_written_as_the_nearest_it_has(encoding: str) -> None:
    log = str(ROOT / "tests" / "symptoms" / "logs" / "transformers-4.48-nan-from-step-16.log")
    environ = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "compatcheck", "diagnose", log]
    done = subprocess.run(command, env=environ, capture_output=True, check=False)
    assert done.returncode == 1 and done.stderr == b""
    curve = next(row for row in done.stdout.decode(encoding).splitlines() if row.strip().startswith("grad norm"))
    assert "?" not in curve and ("xxxxx" if encoding == "ascii" else "×××××") in curve
    assert (("#" if encoding in ("ascii", "cp1252") else "█") in curve) and curve.endswith(("25 x", "25 ×"))
