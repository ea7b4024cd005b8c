"""What `pip show` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.bug_report._names import plausible

TITLE = "pip show"
_NAME, _VERSION = "Name: ", "Version: "


def recognises(block: Block) -> tuple[Line, ...]:
    """Pairs of lines, a name and its version."""
    lines = [line for line in block.short() if line.plain]
    pairs = ((one, two) for one, two in zip(lines, lines[1:]) if _is_pair(one, two))
    return tuple(line for pair in pairs for line in pair)


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for name, version in zip(lines[::2], lines[1::2]):
        yield distribution_claim(name.plain.removeprefix(_NAME), version.plain.removeprefix(_VERSION), version.number)


def _is_pair(one: Line, two: Line) -> bool:
    return one.plain.startswith(_NAME) and two.plain.startswith(_VERSION) and plausible(one.plain.removeprefix(_NAME))
