"""Errors that say which name of a module, or which submodule, the release that ran does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.packages.missing_names import MARKS, missing_name

TITLE = "errors of imports"
WITHIN_PROSE = True


def recognises(block: Block) -> tuple[Line, ...]:
    lines = (line for line in block.short() if any(mark in line.text for mark in MARKS))
    return tuple(line for line in lines if missing_name(line.text))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    """Every name once, with the line that says so first."""
    found: list[Any] = []
    for line in lines:
        said = missing_name(line.text)
        if said not in found:
            found.append(said)
            yield Claim("missing_names", [said], line.number)
