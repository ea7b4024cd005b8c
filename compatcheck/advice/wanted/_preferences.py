"""Which exact pins may move: they become preferences, and what the resolver gets is the requirement without them."""

from __future__ import annotations

from collections.abc import Sequence

from compatcheck.advice._marks import brought
from compatcheck.advice._requirement_text import exact_version, with_version
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


def _single(lines: Sequence[Line]) -> dict[str, str]:
    """The names that are pinned to one version, whatever else is said of them."""
    found: dict[str, set[str]] = {}
    for line in lines:
        version = exact_version(line.text) if line.name and line.kept is None else None
        if line.name and version:
            found.setdefault(line.name, set()).add(version)
    return {name: versions.pop() for name, versions in found.items() if len(versions) == 1}


def _pins(line: Line, versions: dict[str, str]) -> bool:
    return line.name in versions and exact_version(line.text) is not None


def _movable(line: Line) -> Line:
    if line.asked is None or line.kept is not None or exact_version(line.asked) is None:
        return line
    return line._replace(asked=with_version(line.asked, None))
