"""What an interpreter prints where code asks for a name, a parameter or a method that the installed release lacks.

The messages are those of CPython: https://docs.python.org/3/library/exceptions.html#TypeError; from 3.10 on they give
a callable with its class (``SFTTrainer.__init__()``), before that the function's name alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

MARKS = (
    "cannot import name",
    "No module named",
    "has no attribute",
    "unexpected keyword argument",
    "positional argument",
    "keyword-only argument",
    "object is not ",
)
"""One of these stands in every line that holds such an error."""


class MissingName(NamedTuple):
    """A module lacks a name; None for a module that is not there at all, ``module`` being its own path then.

    ``module`` is empty where the message was cut off before it.
    """

    module: str
    name: str | None


class UnexpectedKeyword(NamedTuple):
    """A callable has no parameter of this name."""

    callable: str
    keyword: str


class MissingArgument(NamedTuple):
    """A callable requires parameters that a call does not give."""

    callable: str
    names: tuple[str, ...]


class TooManyPositionals(NamedTuple):
    """A callable takes fewer positional arguments than a call gives; ``self`` counts in both."""

    callable: str
    takes: int
    given: int


class NoAttribute(NamedTuple):
    """An object of a class, or the class itself, has no such attribute."""

    owner: str
    name: str


class WrongKind(NamedTuple):
    """An object of a class cannot be used so: ``subscriptable``, ``callable`` or ``iterable``."""

    owner: str
    use: str


InterfaceError = MissingName | UnexpectedKeyword | MissingArgument | TooManyPositionals | NoAttribute | WrongKind

_Q = r"['\"`‘’“”]?"
_WORD = rf"{_Q}(\w{{1,100}})\b{_Q}"
_BEFORE = 240
"""Characters before a message in which its subject stands."""
_CALLABLE = re.compile(rf"{_Q}\b([A-Za-z_][\w.<>]*)\(\){_Q}\s?\Z|{_Q}\b((?=\w*[A-Z_.])[A-Za-z_][\w.]*){_Q}\s?\Z")
_OWNER = re.compile(rf"(?:\b(module|type object) )?{_Q}\b([A-Za-z_][\w.]*){_Q}( object)?\s?\Z")
_NAMES = re.compile(r"['\"`](\w{1,100})['\"`]")
_LOCALS = "<locals>."

_OTHER_CAUSES = (
    "circular import",
    "partially initialized",
    "is not a package",
    "consider renaming",
    "(unknown location)",
)
"""What the interpreter adds where files that shadow or import one another, or a folder that an uninstalled package
left behind, are the cause and not a release."""

_IMPORTED = re.compile(rf"cannot import name {_WORD} from {_Q}([A-Za-z_]\w{{0,100}}(?:\.\w{{1,100}}){{0,12}})")
_CUT = re.compile(rf"cannot import name {_WORD}(?!\s+from\b)")
_MODULE = re.compile(rf"No module named {_Q}([A-Za-z_]\w{{0,100}}(?:\.\w{{1,100}}){{0,12}})\b")
_ATTRIBUTE = re.compile(rf"has no attribute {_WORD}")
_KEYWORD = re.compile(rf"got an unexpected keyword argument {_WORD}")
_MISSING = re.compile(
    r"missing \d+ required (?:positional|keyword-only) arguments?: ((?:['\"`]\w{1,100}['\"`](?:,? and |, )?){1,20})"
)
_POSITIONALS = re.compile(
    r"takes (?:from \d+ to )?(\d+) positional arguments? but (\d+)"
    r"(?: positional arguments? \(and \d+ keyword-only arguments?\))? (?:was|were) given"
)
_KIND = re.compile(r"is not (subscriptable|callable|iterable)\b")


def read_interface_error(text: str) -> InterfaceError | None:
    """The error that a line states, printed by a program or quoted within a sentence; None where it states none."""
    if not any(mark in text for mark in MARKS) or any(cause in text for cause in _OTHER_CAUSES):
        return None
    for expression, read in _READERS:
        for match in expression.finditer(text):
            if error := read(text[max(0, match.start() - _BEFORE) : match.start()], match):
                return error
    return None


def missing_name(error: InterfaceError) -> dict[str, str | None] | None:
    """An entry of the fact ``missing_names``; of a package that is not there at all no release can be told."""
    if isinstance(error, MissingName) and ((error.name and error.module) or "." in error.module):
        return {"module": error.module, "name": error.name}
    return None


def last_part(callable_: str) -> str:
    """The function or method of a dotted callable."""
    return callable_.rpartition(".")[2]


def class_of(callable_: str) -> str:
    """The class that a message gives with its method, empty where it gives none."""
    return callable_.rpartition(".")[0].rpartition(".")[2]


def _import(_: str, match: re.Match[str]) -> InterfaceError:
    return MissingName(match[2], match[1])


def _cut(_: str, match: re.Match[str]) -> InterfaceError:
    return MissingName("", match[1])


def _module(_: str, match: re.Match[str]) -> InterfaceError:
    return MissingName(match[1], None)


def _attribute(before: str, match: re.Match[str]) -> InterfaceError | None:
    owner = _OWNER.search(before)
    if owner is None:
        return None
    if owner[1] == "module":
        return MissingName(owner[2], match[1])
    is_named = owner[1] or owner[3] or owner[2][:1].isupper()
    return NoAttribute(owner[2], match[1]) if is_named else None


def _keyword(before: str, match: re.Match[str]) -> InterfaceError | None:
    function = _callable(before)
    return UnexpectedKeyword(function, match[1]) if function else None


def _missing(before: str, match: re.Match[str]) -> InterfaceError | None:
    function = _callable(before)
    return MissingArgument(function, tuple(_NAMES.findall(match[1]))) if function else None


def _positionals(before: str, match: re.Match[str]) -> InterfaceError | None:
    function = _callable(before)
    return TooManyPositionals(function, int(match[1]), int(match[2])) if function else None


def _kind(before: str, match: re.Match[str]) -> InterfaceError | None:
    owner = _OWNER.search(before)
    return WrongKind(owner[2], match[1]) if owner and owner[3] else None


def _callable(before: str) -> str:
    match = _CALLABLE.search(before)
    return (match[1] or match[2]).rpartition(_LOCALS)[2] if match else ""


_READERS: tuple[tuple[re.Pattern[str], Callable[[str, re.Match[str]], InterfaceError | None]], ...] = (
    (_IMPORTED, _import),
    (_MODULE, _module),
    (_ATTRIBUTE, _attribute),
    (_KEYWORD, _keyword),
    (_MISSING, _missing),
    (_POSITIONALS, _positionals),
    (_KIND, _kind),
    (_CUT, _cut),
)
