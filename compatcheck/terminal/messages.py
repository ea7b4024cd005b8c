"""What is said beside a report, on standard error: one line each, from whatever a stranger's file may hold."""

from __future__ import annotations

import re
import sys

from compatcheck.files import limits
from compatcheck.files.secrets import masked
from compatcheck.language import gettext as _
from compatcheck.terminal.cells import spelled_out, visible

_KEPT = 80


def say(text: str) -> None:
    """Print the line, with the program's name before it."""
    from compatcheck.terminal.progress import above

    with above():
        print(f"compatcheck: {one_line(_(text))}", file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """The text on one line: without credentials, control characters spelled out, and no word endless."""
    return re.sub(rf"\S{{{limits.WORD_CHARACTERS},}}", _shortened, without_commands(visible(masked(text))))


def lines(text: str) -> str:
    """The text without credentials, control characters and commands spelled out; line ends stay."""
    rows = masked(text).split("\n")
    ends = ("\r" if row.endswith("\r") else "" for row in rows)
    return without_commands("\n".join(f"{spelled_out(row.removesuffix(end))}{end}" for row, end in zip(rows, ends)))


_COMMAND = re.compile(r"^([^\S\n]*):(?=:[A-Za-z])|#(?=#\w{0,20}\[[A-Za-z])", re.MULTILINE)
"""What runners take for a command in the output of a step: ``::error::``, ``##[error]``, ``##vso[task.complete]``.

Those with ``##`` count anywhere in a line
(https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs,
https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands).
"""


def without_commands(text: str, spelled: str = "\\x{:02x}") -> str:
    """The text with the first letter of a stranger's command spelled out in this form."""
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda found: (found[1] or "") + spelled.format(ord(found[0][-1])), text)


def _shortened(word: re.Match[str]) -> str:
    said = _("{start}… ({number} characters)")
    return said.format(start=word[0][:_KEPT], number=f"{len(word[0]):,}")
