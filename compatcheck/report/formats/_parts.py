"""The blocks of a document in the parts that a page has: a heading, and rows with their labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compatcheck.report.document import Block, Curves, Findings, Table
from compatcheck.terminal.lines import Line


class Row(NamedTuple):
    """A label, empty where there is none, and the texts beside it; a strong one leads what follows."""

    label: str
    texts: list[str]
    strong: bool


class Part(NamedTuple):
    heading: str
    rows: list[Row]


def parts(blocks: Iterable[Block]) -> Iterator[Part | Findings | Curves | Table]:
    """The blocks with their lines gathered: an empty one ends a part, a bold one without a label begins it."""
    part = Part("", [])
    for block in blocks:
        is_heading = isinstance(block, Line) and "bold" in block.style and not block.head.strip() and not block.indent
        if not isinstance(block, Line) or is_heading or not (block.text or block.head.strip()):
            if part.heading or part.rows:
                yield part
            part = Part(block.text if isinstance(block, Line) and is_heading else "", [])
            if not isinstance(block, Line):
                yield block
        elif not block.head.strip() and block.indent and part.rows:
            part.rows[-1].texts.append(block.text)
        else:
            texts = [block.text] if block.text else []
            part.rows.append(Row(block.head.strip(" :"), texts, "bold" in block.style))
    if part.heading or part.rows:
        yield part
