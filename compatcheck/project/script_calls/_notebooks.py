"""The code of a Jupyter notebook, with the line of the file that each line of code stands in.

A notebook is JSON; its format is at https://nbformat.readthedocs.io/en/latest/format_description.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from compatcheck.errors import InputError
from compatcheck.files.reading import OversizeError

_DOING = "reading the notebook"
_SPACE = re.compile(r"[ \t\r\n]*")
_WHOLE_CELL = re.compile(r"\s*%%(?!time\b|timeit\b|capture\b|prun\b)")
_MAGIC = re.compile(r"(\s*)(?:[!%]|\?|\S+\?{1,2}\s*$)")
_ASSIGNED_MAGIC = re.compile(r"(\s*[\w\s,.\[\]]+=\s*)[!%]")
_DECODER = json.JSONDecoder()


class Code(NamedTuple):
    """The code of all cells together, and for each of its lines that in the file."""

    text: str
    lines: tuple[int, ...]


def code_of(text: str, path: str) -> Code:
    """The code cells of a notebook in their order, without magics; raises `InputError` where it is none."""
    try:
        cells = [cell for cell in _cells(text) if cell]
    except RecursionError:
        raise OversizeError(_DOING, path, "the content is nested too deeply", "pass an ordinary notebook") from None
    except (ValueError, IndexError):
        raise InputError(_DOING, path, "the file is not notebook JSON", "save it in Jupyter again") from None
    counted, line = 0, 1
    code: list[str] = []
    lines: list[int] = []
    for cell in cells:
        for each, position in zip(_without_magics([source for source, _ in cell]), (at for _, at in cell)):
            line += text.count("\n", counted, position)
            counted = position
            code.append(each)
            lines.append(line)
    return Code("\n".join(code), tuple(lines))


def _cells(text: str) -> Iterator[list[tuple[str, int]]]:
    """Each code cell as its lines with their positions."""
    for key, position in _members(text, _skip(text, 0)):
        if key == "cells":
            for cell in _elements(text, position):
                yield _cell(text, cell)


def _cell(text: str, position: int) -> list[tuple[str, int]]:
    kind: Any = None
    source: list[tuple[str, int]] = []
    for key, at in _members(text, position):
        if key == "cell_type":
            kind = _DECODER.raw_decode(text, at)[0]
        elif key == "source":
            parts = _elements(text, at) if text[at] == "[" else iter((at,))
            source = [(line, part) for part in parts for line in str(_DECODER.raw_decode(text, part)[0]).splitlines()]
    return source if kind == "code" else []


def _members(text: str, position: int) -> Iterator[tuple[str, int]]:
    """The keys of a JSON object and the positions of their values; the values are skipped."""
    if text[position] != "{":
        raise ValueError
    position = _skip(text, position + 1)
    while text[position] != "}":
        key, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position)
        if text[position] != ":":
            raise ValueError
        position = _skip(text, position + 1)
        yield key, position
        position = _next(text, position, "}")


def _elements(text: str, position: int) -> Iterator[int]:
    """The positions of the elements of a JSON array."""
    if text[position] != "[":
        raise ValueError
    position = _skip(text, position + 1)
    while text[position] != "]":
        yield position
        position = _next(text, position, "]")


def _next(text: str, position: int, end: str) -> int:
    """The position after a value and its comma, or of the end."""
    position = _skip(text, _DECODER.raw_decode(text, position)[1])
    if text[position] == ",":
        return _skip(text, position + 1)
    if text[position] != end:
        raise ValueError
    return position


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _without_magics(cell: list[str]) -> Iterator[str]:
    """The lines of a cell with those that are for Jupyter or a shell emptied."""
    other_language = bool(cell) and _WHOLE_CELL.match(cell[0])
    continued = False
    for line in cell:
        magic = None if continued else _MAGIC.match(line)
        if other_language:
            yield ""
        elif magic or continued:
            continued = line.endswith("\\")
            yield f"{magic[1]}pass" if magic else ""
        else:
            yield _ASSIGNED_MAGIC.sub(r"\1...  # ", line)
