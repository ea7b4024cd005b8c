"""What is kept of one module that was read: what it defines, and what it asks of other packages.

All of it is plain: it goes into JSON as it is. A *scope* is the module itself, by the empty name, or a function or
method by its qualified name.
"""

from __future__ import annotations

from typing import NamedTuple

FORMAT = 6
"""Raised where a change here changes what is read; what was kept of an older one is read again."""

OPEN = "*"
FOREIGN, OF_PACKAGE, DEFINED = range(3)
"""A name is imported from elsewhere, imported from another module of the same package, or defined where it stands."""


class Ask(NamedTuple):
    """What a scope asks of another package.

    ``kind`` is ``import`` or ``attribute`` of the dotted ``target``, ``call`` of it, ``super`` for the method of a base
    class, or ``method`` of an object that the class ``target`` made; then ``name`` is the method. ``places`` counts
    the arguments by place, and is negative where a star gives more of any kind.
    """

    kind: str
    target: str
    name: str
    places: int
    keywords: tuple[str, ...]
    scope: str
    conditions: tuple[str, ...]
    line: int


class Own(NamedTuple):
    """A module of the package itself that a scope loads, or a function of it that it calls."""

    target: str
    scope: str
    conditions: tuple[str, ...]


class SelfCall(NamedTuple):
    """A method of the object itself that a method calls, and with what; classes derived elsewhere override it."""

    owner: str
    method: str
    places: int
    keywords: tuple[str, ...]
    scope: str
    conditions: tuple[str, ...]


class Class(NamedTuple):
    """A class as it is written. ``fields`` are those of a dataclass; ``made_by`` is its constructor's signature."""

    bases: tuple[str, ...]
    methods: dict[str, str]
    attributes: tuple[str, ...]
    properties: tuple[str, ...]
    fields: tuple[str, ...] | None
    is_open: bool


class Module(NamedTuple):
    """What a module binds at its top level, each name with where it is from; what it takes over; what it asks.

    ``taken`` are modules of which it takes every public name. ``offered`` is its ``__all__``, where that is plain.
    ``elsewhere`` are modules of the package that may hold anything by what is done here. A ``lazy`` package gives names
    up on demand, so that what it takes over for type checkers alone need not be there, and a ``gathering`` one those of
    all files beside it: https://github.com/huggingface/transformers/blob/v4.57.6/src/transformers/utils/import_utils.py
    """

    names: dict[str, int]
    taken: tuple[str, ...] = ()
    offered: tuple[str, ...] | None = None
    elsewhere: tuple[str, ...] = ()
    lazy: bool = False
    gathering: bool = False
    origins: dict[str, str] = {}
    functions: dict[str, str] = {}
    classes: dict[str, Class] = {}
    asks: tuple[Ask, ...] = ()
    loads: tuple[Own, ...] = ()
    calls: tuple[Own, ...] = ()
    self_calls: tuple[SelfCall, ...] = ()
    needs: dict[str, tuple[str, ...]] = {}
    """The distributions without which a name is not bound, of those that need one."""
    tests: dict[str, tuple[str, ...]] = {}
    """What holds where a function returns true, of those whose text tells; with ``?`` where there is more to it."""
