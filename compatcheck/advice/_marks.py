"""What stands behind a line of ours and is known again in the next run: what moved it, and what brought it along."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from compatcheck.advice.model import Line, Move, Solution, Wanted
from compatcheck.advice.requirement_text import pin_in
from compatcheck.packages.requirements_file import logical_lines

OWN = "# compatcheck: "
MADE_BY = "# This file was made by "
BROUGHT = OWN + "dependencies of the packages above"
_MARK = re.compile(r"(?:^|\s+)# compatcheck: .*\Z")


def via(parents: Iterable[str]) -> str:
    """Who brought a distribution along; without that no line is known again as brought."""
    return "# via " + (", ".join(sorted(parents)) or "the requirements")


def brought(line: Line) -> bool:
    """Whether a line is one that we wrote for what others bring along, not one that the user asks for."""
    return line.name is not None and line.asked is None and line.comment.startswith("# via ") and ";" not in line.text


def mark_in(comment: str) -> str:
    """Our mark in a comment, or nothing."""
    found = _MARK.search(comment)
    return found[0].strip() if found else ""


def own_part(comment: str) -> str:
    """A comment without our mark."""
    return _MARK.sub("", comment)


def behind(text: str, *comments: str) -> str:
    """A line with what stands behind it."""
    return "  ".join(filter(None, (text, *comments)))


def marks(wanted: Wanted, solution: Solution, moves: Mapping[str, Move], previous: str | None) -> dict[str, str]:
    """What to say behind the distributions that moved.

    What an earlier run said of the very version that stays is said again, so that a second run changes nothing.
    """
    earlier = [(line.text, line.comment) for line in logical_lines(previous or "")]
    said = [*earlier, *((line.text, line.comment) for line in wanted.lines)]
    elsewhere = {line.text for line in wanted.lines if line.asked is None and not brought(line)}
    here = [(pin_in(text), mark_in(comment)) for text, comment in said if text not in elsewhere]
    known = {pin: mark for pin, mark in here if pin and mark}
    every = sorted({entry for move in moves.values() for entry in move.entries})
    fresh = {name: _mark(moves[name], every, wanted.complete) for name in solution.versions if name in moves}
    return {**{name: known[name, v] for name, v in solution.versions.items() if (name, v) in known}, **fresh}


def _mark(move: Move, every: list[str], complete: bool) -> str:
    along = "with " + ", ".join(every) if every and not move.why else "the requirements"
    cause = ", ".join((*move.entries, *move.links)) or along
    return OWN + cause + (f", was {move.was}" if move.was else ", new" if complete else "")
