"""``requirements.txt``: the user's own lines with versions, in their order, then what these bring along, sorted."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from compatcheck.advice._credentials import without_credentials
from compatcheck.advice._marks import BROUGHT, behind, brought, marks, own_part, via
from compatcheck.advice.model import Line, Move, Solution, Wanted
from compatcheck.advice.requirement_text import pin_in, with_version
from compatcheck.packages.requirements_file import logical_lines


def render(
    wanted: Wanted, solution: Solution, moves: Mapping[str, Move], locked: str | None, previous: str | None
) -> str:
    """The text; hashes are those of ``locked``, behind each line as pip reads them."""
    said = marks(wanted, solution, moves, previous)
    hashes = _hashes(locked or "")
    own = [line for line in wanted.lines if not brought(line)]
    lines: list[str] = []
    for _, group in itertools.groupby(own, key=lambda line: line.at and line.at.file):
        lines += _fresh([_own(line, solution.versions, said, hashes) for line in group], lines)
    while lines and not lines[-1]:
        lines.pop()
    asked = {line.name for line in own if line.asked is not None}
    along = [
        behind(_hashed(f"{name}=={version}", hashes), via(solution.parents.get(name, ())), said.get(name, ""))
        for name, version in sorted(solution.versions.items())
        if name not in asked
    ]
    below = [*([""] if lines else ()), BROUGHT, *along] if along else []
    return "".join(line + "\n" for line in (*lines, *below))


def _fresh(lines: list[str], above: Sequence[str]) -> list[str]:
    """The lines of a file that stand in none above it: what is written may be among what is read the next time."""
    rest = lines[len(above) :] if lines[: len(above)] == list(above) else lines
    fresh = [text for text in rest if not text or text not in above]
    return fresh if any(fresh) else []


def solved(line: Line, versions: Mapping[str, str]) -> str | None:
    """The version for a line; None where it stays as it stands: its marker does not hold, or names another version."""
    if line.asked is None or line.kept is not None or pin_in(line.asked):
        return None
    return versions.get(line.name or "")


def _own(
    line: Line, versions: Mapping[str, str], said: Mapping[str, str], hashes: Mapping[tuple[str, str], Sequence[str]]
) -> str:
    version = solved(line, versions)
    if version is None:
        return behind(_hashed(line.text, hashes, line.asked or ""), line.comment)
    text = _hashed(with_version(line.text, version), hashes)
    return behind(text, own_part(line.comment), said.get(line.name or "", ""))


def _hashes(locked: str) -> dict[tuple[str, str], list[str]]:
    """The hashes of each pin, or of a URL by the text in front of its hashes."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in logical_lines(locked):
        text, *digests = line.text.split(" --hash=")
        if digests:
            found[_key(text)] = [digest.strip() for digest in digests]
    return found


def _key(text: str) -> tuple[str, str]:
    return pin_in(text) or (without_credentials(text.strip()), "")


def _hashed(text: str, hashes: Mapping[tuple[str, str], Sequence[str]], asked: str | None = None) -> str:
    digests = hashes.get(_key(text if asked is None else asked), ())
    return "".join((text, *(f" \\\n    --hash={digest}" for digest in digests)))
