"""Which exact pins may move: they become preferences, and what the resolver gets is the requirement without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from compatcheck.advice._marks import brought
from compatcheck.advice._requirement_text import pin_in, pins, with_version
from compatcheck.advice.model import Line, Wanted
from compatcheck.advice.wanted._lines import Read


def wanted(parts: Sequence[Read]) -> Wanted:
    """The lines together. A pin of the user's own counts before one of a constraint, and that before a brought one."""
    lines = [part.line for part in parts if not part.constraint]
    limits = [part.line for part in parts if part.constraint and not part.firm and part.line.asked is not None]
    firm = [part.line.asked for part in parts if part.constraint and part.firm and part.line.asked is not None]
    own = _single([line for line in lines if line.asked is not None])
    limiting = _single(limits)
    along = _single([line for line in lines if brought(line)])
    return Wanted(
        tuple(_movable(line) if line.name in own else line for line in lines),
        {**along, **limiting, **own},
        (*firm, *(line.asked or "" for line in limits if not _pins(line, limiting))),
    )


def _single(lines: Iterable[Line]) -> dict[str, str]:
    return pins(line.text for line in lines if line.name and line.kept is None)


def _pins(line: Line, versions: Mapping[str, str]) -> bool:
    return line.name in versions and pin_in(line.text) is not None


def _movable(line: Line) -> Line:
    if line.asked is None or line.kept is not None or pin_in(line.asked) is None:
        return line
    return line._replace(asked=with_version(line.asked, None))
