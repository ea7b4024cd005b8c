"""Requirements files as pip reads them: pins, ranges, includes and constraints; its other options count for nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import marked_text
from compatcheck.packages.requirements_file import Walk, without_options
from compatcheck.packages.requirements_file import included as included
from compatcheck.project.requirements._asked import (
    Asked,
    facts_of,
    is_public_index,
    label_of_index,
    parse,
    requests,
    with_label,
)
from compatcheck.project.requirements._markers import Place

_DOING = "reading requirements from"
_INDEX = re.compile(r"(?:-i|--index-url|--extra-index-url|--find-links|-f|--index)[\s=]+(\S+)")
_OTHER_TORCH = re.compile(r"torch|^(?!\w+://)")
"""Where a torch may lie that is not the package index's: an address that names it, or a folder."""

TITLE = "a requirements file"


class Line(NamedTuple):
    """A requirement as it stands; ``constraint`` where it only limits what others ask for."""

    text: str
    at: Location
    constraint: bool = False


def recognises(path: str) -> bool:
    """By its name alone: any text may be a list of requirements."""
    name = os.path.basename(path)
    return name.startswith("requirements") and name.endswith(".txt") and os.path.isfile(path)


def indexes_in(text: str) -> list[str]:
    """The package indexes that options in a text name."""
    return _INDEX.findall(text)


def read(path: str, python: str | None = None) -> Environment:
    """``distributions`` and ``distribution_ranges`` of a requirements file and of those it includes.

    The list is not complete. ``python`` is the version that markers are judged by; without it those that depend on it
    leave their requirement unknown. A constraints file that is missing limits nothing. A file that speaks of
    ``--no-deps`` is taken to be installed so. Raises `InputError` where a file cannot be read or a line is no
    requirement.
    """
    asked, constraints = asked_in(path, Place(python))
    together = "--no-deps" not in marked_text(path, limits.REQUIREMENTS_BYTES)
    listed = requests(path, asked, constraints, resolved_together=together)
    facts = facts_of(asked, constraints)
    facts = facts.with_fact("requirements", listed) if listed else facts
    torch = facts.get("distributions.torch")
    other = next((index for index in indexes_of(path) if _OTHER_TORCH.search(index)), None)
    if other is None or not isinstance(torch, str) or "+" in torch:
        return facts
    why = f"{os.path.basename(path)} names {other}, and its build of torch is unknown"
    return facts._replace(reasons={**facts.reasons, "cuda.runtime": why})


def indexes_of(path: str) -> list[str]:
    """The package indexes and folders of wheels that a file and those it includes name."""
    return [
        index for line in _lines(path, False, Walk()) if line.text.startswith("-") for index in indexes_in(line.text)
    ]


def asked_in(path: str, place: Place) -> tuple[list[Asked], list[Asked]]:
    """The requirements and the constraints of a file and of those it includes. Errors as for `read`."""
    lines = list(_lines(path, False, Walk()))
    indexes = [index for line in lines for index in indexes_in(line.text)]
    label = next(filter(None, map(label_of_index, indexes)), None)
    elsewhere = not all(map(is_public_index, indexes))
    asked: list[Asked] = []
    constraints: list[Asked] = []
    for line in lines:
        if line.text.startswith("-") and not line.text.startswith(("-e", "--editable")):
            continue
        found = parsed(line.text, line.at, place)
        if found is not None:
            found = with_label(found, label)._replace(elsewhere=elsewhere or found.elsewhere)
            (constraints if line.constraint else asked).append(found)
    return asked, constraints


def parsed(text: str, at: Location, place: Place) -> Asked | None:
    """One line without the options behind it, as hashes. Raises `InputError` where it is no requirement."""
    try:
        return parse(without_options(text).strip(), at, place)
    except ValueError as error:
        raise InputError(_DOING, at.file, f"line {at.line}: {error}", "write name==version") from None


def _lines(path: str, constraint: bool, walk: Walk) -> Iterator[Line]:
    """Each requirement and option with its place; continuations joined, comments dropped, includes followed."""
    for number, text, _ in walk.lines(path, marked_text(path, limits.REQUIREMENTS_BYTES)):
        if not text:
            continue
        include = included(text)
        if include is None:
            yield Line(text, Location(path, number), constraint)
            continue
        inner = os.path.join(os.path.dirname(path), include.path)
        if not include.constraint and not os.path.lexists(inner):
            seen = f"line {number} names {include.path}, which does not exist"
            raise InputError(_DOING, path, seen, "correct the path; it is relative to the folder of that file")
        if not include.constraint or os.path.lexists(inner):
            yield from _lines(inner, constraint or include.constraint, walk)
