"""Environments as people paste them into a report, a file per format in `formats`.

``TITLE`` names the format, ``recognises(block)`` gives the lines that are its own, and ``read(lines)`` what they
claim. ``TYPED`` marks one that people also write by hand, to say what they advise, ``WITHIN_PROSE`` one whose lines
may say more than it reads. What no format recognises is read as prose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compatcheck.environment import Environment
    from compatcheck.results.cases import Account


def read_account(text: str, source: str) -> Account:
    """What a pasted report or article says: the environment at fault, each mention of a fact, and contrasts."""
    from compatcheck.bug_report import _read

    return _read.read_account(text, source)


def titles() -> tuple[str, ...]:
    """What the formats of reports are called, besides prose."""
    from compatcheck.bug_report import _read

    return tuple(unit.TITLE for unit in _read.formats())


def read_report(text: str, source: str) -> Environment:
    """The environment that the text of a bug report states; what its lines contradict is unknown, with the reason."""
    return read_account(text, source).environment


def read_text_of_report(path: str) -> tuple[str, str]:
    """The text of a file, ``-`` being standard input, and what to call it; encodings and limits as for reports."""
    from compatcheck.bug_report import _input

    return _input.read_input(path)


def lines_of_text(text: str) -> str:
    """What a log reader takes of a report: of GitHub's JSON the texts, and each piece of a copied page by itself."""
    from compatcheck.bug_report import _html, _issue

    issues = _issue.read(text)
    told = "\n\n".join(issue.text for issue in issues) if issues else text
    return told.replace(_html.BREAK, "\r")


def is_thread(document: Any) -> bool:
    """Whether a JSON document is what GitHub gives of issues, discussions and their comments."""
    from compatcheck.bug_report import _issue

    return _issue.is_thread(document)
