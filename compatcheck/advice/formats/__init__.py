"""Versions as the text of a file, one module per format with ``render(wanted, solution, moves, locked, previous)``."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence

from compatcheck.advice._credentials import OMITTED, redacted, without_credentials
from compatcheck.advice._marks import MADE_BY, OWN
from compatcheck.advice.model import Line, Move, Solution, Wanted
from compatcheck.packages.requirements_file import logical_lines

_NAMES = ("requirements", "constraints", "pylock", "pyproject")
_ONLY_VERSIONS = {"constraints": "constraints", "pyproject": "a pyproject.toml"}


def names() -> tuple[str, ...]:
    """The formats, the default first."""
    return _NAMES


def holds_hashes(format_name: str, wanted: Wanted, previous: str | None) -> bool:
    """Whether the text has hashes unasked: as the file has that it replaces, or as a line of the user's demands."""
    if format_name != "requirements":
        return format_name == "pylock"
    return "--hash" in (previous or "") or any(line.text == "--require-hashes" for line in wanted.lines)


def render(
    format_name: str,
    wanted: Wanted,
    solution: Solution,
    moves: Mapping[str, Move],
    locked: str | None,
    previous: str | None,
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """The text of a file with the solution's versions; the same input gives the same text, its own output too.

    ``locked`` is what the resolver locked: hashed requirements, or a pylock for that format. ``previous`` is the text
    of the file that will be replaced, None where there is none: credentials that stand there may stay, no other does.
    ``notes`` go above everything, and the ``command`` that makes the file above these, where it is a file of its own.
    """
    unit = importlib.import_module(f"{__name__}.{format_name}")
    text: str = unit.render(wanted, solution, moves, locked, previous)
    made_by = f"{MADE_BY}{command}\n" if command and format_name != "pyproject" else ""
    return without_credentials(made_by + "".join(f"{OWN}{note}\n" for note in notes) + text, previous)


def is_current(text: str, previous: str | None) -> bool:
    """Whether both texts pin the same; the command that made them may differ."""
    return previous is not None and _without_command(text) == _without_command(previous)


def _without_command(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(MADE_BY))


def left_out(format_name: str, wanted: Wanted, previous: str | None, text: str) -> tuple[str, ...]:
    """What the rendered text lacks, a line for each: credentials, what a format cannot say, and hashes nobody knows.

    Of a project that text has, what is in it unjudged, too.
    """
    said: list[str] = []
    for line in wanted.lines:
        if not _can_say(format_name, line):
            bare = without_credentials(line.text)
            said.append(f"{line.where}: {bare} is not part of {_ONLY_VERSIONS[format_name]}")
        elif any(without_credentials(part, previous) != part for part in (line.text, line.comment)):
            said.append(f"{line.where}: its credentials are omitted, keep them in a .netrc file or a keyring")
    if not said and OMITTED in text:
        said.append("pylock.toml: its credentials are omitted, keep them in a .netrc file or a keyring")
    if format_name == "pyproject":
        from compatcheck.advice.formats import pyproject

        said += pyproject.left_out(wanted, previous, text)
    return (*said, *_unhashed(text, {line.text for line in wanted.lines if line.asked is None}))


def _can_say(format_name: str, line: Line) -> bool:
    """Constraints hold names with versions only, and a project's dependencies names."""
    if format_name not in _ONLY_VERSIONS or line.asked is None:
        return True
    return line.name is not None and (line.kept is None or (format_name == "pyproject" and line.text[:1] not in "-./"))


def _unhashed(text: str, elsewhere: set[str]) -> Iterator[str]:
    """The lines without a hash of a file that has them; what is not installed here needs none."""
    if " --hash=" not in text:
        return
    for line in logical_lines(text):
        option = line.text.startswith("-") and not line.text.startswith(("-e", "--editable"))
        if line.text and not option and " --hash=" not in line.text and line.text not in elsewhere:
            yield f"{without_credentials(line.text)} has no hash, so pip refuses the file with --require-hashes"


def difference(previous: str, text: str, name: str) -> str:
    """What would change in a file, as a unified diff without the credentials of URLs."""
    import difflib

    old, new = (side.splitlines(keepends=True) for side in (previous, text))
    return "".join(map(redacted, difflib.unified_diff(old, new, name, f"{name} (new)")))
