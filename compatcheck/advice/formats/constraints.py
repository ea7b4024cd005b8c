"""A constraints file: names with versions, sorted; neither extras nor URLs nor options."""

from __future__ import annotations

from collections.abc import Mapping

from compatcheck.advice._marks import behind, brought, mark_in, marks
from compatcheck.advice.formats.requirements import solved
from compatcheck.advice.model import Move, Solution, Wanted
from compatcheck.advice.requirement_text import with_version, without_extras


def render(
    wanted: Wanted, solution: Solution, moves: Mapping[str, Move], locked: str | None, previous: str | None
) -> str:
    """The text; a line that holds elsewhere only stays as it stands."""
    said = marks(wanted, solution, moves, previous)
    own = [line for line in wanted.lines if line.name is not None and line.kept is None and not brought(line)]
    lines: dict[str, tuple[str, str]] = {}
    for line in own:
        version = solved(line, solution.versions)
        text = without_extras(with_version(line.text, version) if version else line.text)
        mark = said.get(line.name or "", "") if version else mark_in(line.comment)
        lines.setdefault(text, (line.name or "", mark))
    asked = {line.name for line in own if line.asked is not None}
    for name, version in solution.versions.items():
        if name not in asked:
            lines[f"{name}=={version}"] = (name, said.get(name, ""))
    ordered = sorted(lines.items(), key=lambda each: (each[1][0], each[0]))
    return "".join(behind(text, mark) + "\n" for text, (_, mark) in ordered)
