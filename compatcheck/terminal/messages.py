"""What is said beside a report, on standard error: one line each, from whatever a stranger's file may hold."""

from __future__ import annotations

import re
import sys

from compatcheck.files import limits
from compatcheck.files.secrets import masked
from compatcheck.language import gettext as _
from compatcheck.terminal.cells import visible

_KEPT = 80


def say(text: str) -> None:
    """Print the line, with the program's name before it."""
    print(f"compatcheck: {one_line(_(text))}", file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """The text on one line: without credentials, control characters spelled out, and no word endless."""
    return re.sub(rf"\S{{{limits.WORD_CHARACTERS},}}", _shortened, visible(masked(text)).replace("##[", "#\\x23["))


def _shortened(word: re.Match[str]) -> str:
    said = _("{start}… ({number} characters)")
    return said.format(start=word[0][:_KEPT], number=f"{len(word[0]):,}")
