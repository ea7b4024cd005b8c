"""Versions as the text of a file, one module per format with ``render(wanted, solution, moves, locked, previous)``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

from compatcheck.advice.model import Line, Move, Solution, Wanted

_NAMES = ("requirements", "constraints", "pylock", "pyproject")
_ONLY_VERSIONS = {"constraints": "constraints", "pyproject": "a pyproject.toml"}


def names() -> tuple[str, ...]:
    """The formats, the default first."""
    return _NAMES


def render(
    format_name: str,
    wanted: Wanted,
    solution: Solution,
    moves: Mapping[str, Move],
    locked: str | None,
    previous: str | None,
    notes: Sequence[str] = (),
) -> str:
    """The text of a file with the solution's versions; the same input gives the same text, its own output too.

    ``locked`` is what the resolver locked: hashed requirements, or a pylock for that format. ``previous`` is the text
    of the file that will be replaced, None where there is none: credentials that stand there may stay, no other does.
    ``notes`` go above everything.
    """
    from compatcheck.advice._marks import OWN
    from compatcheck.advice.formats._credentials import without_credentials

    unit = importlib.import_module(f"{__name__}.{format_name}")
    text: str = unit.render(wanted, solution, moves, locked, previous)
    return without_credentials("".join(f"{OWN}{note}\n" for note in notes) + text, previous)


def left_out(format_name: str, wanted: Wanted, previous: str | None) -> tuple[str, ...]:
    """What of the user's own lines the text leaves out, a line for each: credentials, and what a format cannot say."""
    from compatcheck.advice.formats._credentials import without_credentials

    said: list[str] = []
    for line in wanted.lines:
        if not _can_say(format_name, line):
            said.append(
                f"{_where(line)}{without_credentials(line.text, None)} is no part of {_ONLY_VERSIONS[format_name]}"
            )
        elif any(without_credentials(text, previous) != text for text in (line.text, line.comment)):
            said.append(f"{_where(line)}its credentials are left out, keep them in a .netrc file or a keyring")
    return tuple(said)


def _can_say(format_name: str, line: Line) -> bool:
    """Constraints hold names with versions only, and a project's dependencies names."""
    if format_name not in _ONLY_VERSIONS or line.asked is None:
        return True
    return line.name is not None and (line.kept is None or (format_name == "pyproject" and line.text[:1] not in "-./"))


def _where(line: Line) -> str:
    return f"{line.at.file}:{line.at.line}: " if line.at else ""
