"""The values of the simulated run: constants stand for themselves, and what is not known is `UNKNOWN`."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

Value = object
"""A constant, a tuple of values, a packaging version, an exception class, or one of the classes below."""


class _Unknown:
    """Whatever it may be; every operation on it gives itself."""

    def __repr__(self) -> str:
        return "UNKNOWN"


class Known:
    """An object of Python whose meaning is known here; it counts as true and is not None."""


UNKNOWN = _Unknown()
SPEC = Known()
"""The spec of a module that exists."""


class Place(NamedTuple):
    """A line of a module's file."""

    module: str
    file: str
    line: int


class Missing(NamedTuple):
    """What could not be found: a whole module (``name`` is None) or a name in one that is there."""

    module: str
    name: str | None


class Raised(Exception):
    """An exception of the simulated program, certain where it reaches a statement that surely runs.

    ``kind`` is a built-in exception class, a `Class` or `UNKNOWN`; ``trail`` the lines it passed, innermost first.
    """

    def __init__(self, kind: Value, missing: Missing | None = None, text: str = "") -> None:
        super().__init__(text)
        self.kind = kind
        self.missing = missing
        self.text = text
        self.trail: list[Place] = []

    def again(self) -> Raised:
        """The same failure of another import: a module that failed fails again."""
        other = Raised(self.kind, self.missing, self.text)
        other.trail = list(self.trail)
        return other


class Undecided(Exception):
    """What runs next depends on something unknown."""


class Lazy(NamedTuple):
    """Which submodule serves which name of a module that loads them on demand.

    ``wraps`` is whether a failing submodule surfaces as a RuntimeError; ``forgiving`` whether other names are tried.
    """

    homes: dict[str, str]
    modules: frozenset[str]
    objects: dict[str, Value]
    guarded: frozenset[str]
    exact: bool
    wraps: bool
    forgiving: bool


class Module:
    """A module; ``open`` where it may hold names that are not in ``names``.

    ``state`` is "running", "done" or "failed"; ``lazy`` serves the names of a module that loads them on demand, and
    ``compiled`` names the extension modules whose names it took over whole; ``borrowers`` imported names of it that it
    did not have yet; ``makes_path`` is whether its code changes where its submodules are looked for.
    """

    def __init__(self, name: str, file: str | None = None, folders: tuple[str, ...] = (), open_: bool = False) -> None:
        self.name = name
        self.file = file
        self.folders = folders
        self.open = open_
        self.names: dict[str, Value] = {}
        self.state = "done"
        self.error: Raised | None = None
        self.lazy: Lazy | None = None
        self.makes_path = False
        self.eager_annotations = True
        self.compiled: set[str] = set()
        self.compiled_itself = False
        self.late: frozenset[str] = frozenset()
        self.borrowers: set[str] = set()

    def __repr__(self) -> str:
        return f"<module {self.name}>"


class Namespace(NamedTuple):
    """What ``globals()`` gives."""

    module: Module


class Frame:
    """One running block: a module, a class body or a function call."""

    def __init__(
        self, module: Module, names: dict[str, Value], outer: Frame | None = None, kind: str = "module"
    ) -> None:
        self.module = module
        self.names = names
        self.outer = outer
        self.kind = kind
        self.globals: set[str] = set()
        self.unsure = 0
        self.returns: list[Value] = []
        self.line = 0


class Function:
    """A function written in Python; ``memory`` keeps results where it is cached."""

    def __init__(self, node: ast.FunctionDef | ast.Lambda, frame: Frame, defaults: dict[str, Value]) -> None:
        self.node = node
        self.frame = frame
        self.defaults = defaults
        self.memory: dict[object, Value] | None = None

    def __repr__(self) -> str:
        return f"<function {getattr(self.node, 'name', 'lambda')}>"


class Class:
    """A class written in Python."""

    def __init__(
        self,
        name: str,
        bases: tuple[Value, ...],
        names: dict[str, Value],
        module: Module,
        plain: bool,
        lines: tuple[int, int],
    ) -> None:
        self.name = name
        self.bases = bases
        self.names = names
        self.module = module
        self.plain = plain
        self.lines = lines

    def __repr__(self) -> str:
        return f"<class {self.name}>"


class Array:
    """A list or set; ``exact`` where it holds these items and no others."""

    def __init__(self, items: list[Value], exact: bool = True) -> None:
        self.items = items
        self.exact = exact

    def __repr__(self) -> str:
        return f"<list of {len(self.items)}>"


class Table:
    """A dictionary; ``exact`` where it holds these items and no others."""

    def __init__(self, items: dict[Any, Value], exact: bool = True) -> None:
        self.items = items
        self.exact = exact

    def __repr__(self) -> str:
        return f"<dict of {len(self.items)}>"


def truth(value: Value) -> bool | None:
    """Whether a value counts as true, or None where that is not known."""
    if isinstance(value, (Array, Table)):
        return bool(value.items) if value.exact else (True if value.items else None)
    if value is None or isinstance(value, (bool, int, float, str, bytes, tuple, frozenset)):
        return bool(value)
    if isinstance(value, (Module, Function, Known, type)):
        return True
    return None


def items(value: Value) -> list[Value] | None:
    """What iterating gives, or None where that is not known."""
    if isinstance(value, (tuple, frozenset)):
        return list(value)
    if isinstance(value, (Array, Table)) and value.exact:
        return list(value.items)
    return None


def is_constant(value: Value) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_constant, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes))


def is_exception(value: Value, wanted: Value) -> bool | None:
    """Whether an exception of one kind is caught by a handler of another; None where that is not known."""
    if isinstance(wanted, tuple):
        answers = [is_exception(value, each) for each in wanted]
        return True if True in answers else None if None in answers else False
    if wanted in (Exception, BaseException):
        return True
    if isinstance(value, type) and isinstance(wanted, type):
        return issubclass(value, wanted)
    if value is wanted:
        return True
    if isinstance(value, Class):
        answers = [is_exception(base, wanted) for base in value.bases]
        if True in answers:
            return True
        return None if None in answers or UNKNOWN in value.bases else False
    if isinstance(value, type) and isinstance(wanted, Class):
        return False
    return None
