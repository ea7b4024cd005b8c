"""Requirements files of any name: includes in place, constraints apart, comments and options kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from compatcheck.advice._marks import BROUGHT, MADE_BY, OWN
from compatcheck.advice.model import Line
from compatcheck.advice.requirement_text import expanded
from compatcheck.advice.wanted._lines import DOING, Read, absolute, located, requirement
from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import marked_text
from compatcheck.packages.requirements_file import LogicalLine, Walk, included

_OPTION = re.compile(r"(-[a-z]|--[a-z][a-z-]*)(?:\s*=\s*|\s+|\Z)(.*)\Z")
_FOR_THE_RESOLVER = frozenset(
    ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index", "--no-binary", "--only-binary")
) | {"--pre"}
_FOR_PIP = frozenset(("--prefer-binary", "--require-hashes", "--trusted-host", "--use-feature"))


def read(path: str, markers: Mapping[str, str] | None, text: str | None = None) -> Iterator[Read]:
    """Every line of a file and of those it includes, the empty ones too. Raises `InputError` as the door says.

    ``text`` is what was given without a file; ``path`` then only names it.
    """
    yield from _read(path, markers, Walk(), False, text)


def _read(
    path: str,
    markers: Mapping[str, str] | None,
    walk: Walk,
    constraint: bool,
    text: str | None = None,
) -> Iterator[Read]:
    below = False
    for logical in walk.lines(path, marked_text(path, limits.REQUIREMENTS_BYTES) if text is None else text):
        at = Location(path, logical.number)
        include = included(expanded(logical.text))
        if include is not None:
            inner = os.path.join(os.path.dirname(path), include.path)
            if not os.path.isfile(inner):
                advice = "correct the path; it is relative to the folder of that file"
                raise InputError(DOING, path, f"line {at.line} names {include.path}, which is not a file", advice)
            yield from _read(inner, markers, walk, constraint or include.constraint)
        elif not logical.text and logical.comment.startswith((OWN, MADE_BY)):
            below = below or logical.comment == BROUGHT
        elif not constraint or logical.text:
            yield _one(logical, at, markers, walk.including[0], constraint, below)


def _one(
    logical: LogicalLine, at: Location, markers: Mapping[str, str] | None, top: str, constraint: bool, below: bool
) -> Read:
    text, comment = logical.text, logical.comment
    if not text:
        return Read(Line("", comment=comment, at=at))
    if text.startswith("-") and not text.startswith(("-e", "--editable")):
        return _option(text, comment, at, top)
    line = located(text, comment, at, markers) or requirement(text, comment, at, markers)
    if below and comment.startswith("# via "):
        line = line._replace(asked=None)
    return Read(line, constraint)


def _option(text: str, comment: str, at: Location, top: str) -> Read:
    """An option on a line of its own; a file at a URL that is included is for the resolver to read."""
    found = _OPTION.match(text)
    name, value = (found[1], found[2].strip("'\"")) if found else (text, "")
    if name in ("-c", "--constraint"):
        return Read(Line(text, asked=text, comment=comment, at=at), True, True)
    if name in ("-r", "--requirement"):
        return Read(Line(text, asked=text, comment=comment, kept="a requirements file at a URL", at=at))
    if name in _FOR_PIP:
        return Read(Line(text, comment=comment, at=at))
    if name not in _FOR_THE_RESOLVER:
        raise InputError(
            DOING, at.file, f"line {at.line}: {name} is not an option of a requirements file", "delete it there"
        )
    if name not in ("-f", "--find-links") or "://" in value:
        return Read(Line(text, asked=text, comment=comment, at=at))
    folder = absolute(value, at.file)
    same = os.path.dirname(os.path.realpath(at.file)) == os.path.dirname(top)
    shown = text if same else f"{name} {os.path.relpath(folder, os.path.dirname(top))}"
    return Read(Line(shown, asked=f"{name} {folder}", comment=comment, at=at))
