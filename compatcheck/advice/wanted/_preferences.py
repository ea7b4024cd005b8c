"""Which exact pins may move: they become preferences, and what the resolver gets is the requirement without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from compatcheck.advice._marks import brought, mark_in
from compatcheck.advice.model import Line, Wanted
from compatcheck.advice.requirement_text import pin_in, pins, with_version
from compatcheck.advice.wanted._lines import Read


def wanted(parts: Sequence[Read]) -> Wanted:
    """The lines together. A pin of the user's own counts before one of a constraint, and that before a brought one.

    One that an earlier run moved counts before the pin in another file that it was moved from; where two files say of
    different versions that they were moved to, neither is preferred.
    """
    lines = [part.line for part in parts if not part.constraint]
    limits = [part.line for part in parts if part.constraint and not part.firm and part.line.asked is not None]
    firm = [part.line.asked for part in parts if part.constraint and part.firm and part.line.asked is not None]
    asked = [line for line in lines if line.asked is not None]
    moved = _moved(asked)
    own = {**_single(asked), **{name: min(versions) for name, versions in moved.items() if len(versions) == 1}}
    limiting = _single(limits)
    along = _single([line for line in lines if brought(line)])
    return Wanted(
        tuple(_movable(line) if line.name in own or line.name in moved else line for line in lines),
        {**along, **limiting, **own},
        (*firm, *(line.asked or "" for line in limits if not _pins(line, limiting))),
        stated=frozenset((*limiting, *own)),
    )


def _moved(lines: Sequence[Line]) -> dict[str, set[str]]:
    """The versions that an earlier run moved a name to, where the file it stands in pins no other."""
    found: dict[str, set[str]] = {}
    for file in dict.fromkeys(line.at and line.at.file for line in lines):
        here = [line for line in lines if (line.at and line.at.file) == file]
        marked = {line.name for line in here if mark_in(line.comment)}
        for name, version in _single(here).items():
            if name in marked:
                found.setdefault(name, set()).add(version)
    return found


def _single(lines: Iterable[Line]) -> dict[str, str]:
    return pins(line.text for line in lines if line.name and line.kept is None)


def _pins(line: Line, versions: Mapping[str, str]) -> bool:
    return line.name in versions and pin_in(line.text) is not None


def _movable(line: Line) -> Line:
    if line.asked is None or line.kept is not None or pin_in(line.asked) is None:
        return line
    return line._replace(asked=with_version(line.asked, None))
