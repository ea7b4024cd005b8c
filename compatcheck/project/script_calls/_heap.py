"""What a script holds while it is followed: values that can change, and a log of changes that can be undone."""

from __future__ import annotations

import ast
import builtins
import itertools
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from compatcheck.files.python_syntax import Function
from compatcheck.project.python_values import NOT_RUN, Open, Reference, is_plain
from compatcheck.project.script_calls.calls import Call

MISSING: Any = object()
OPENED: Any = object()
"""The slot that says why a mutable value may have changed where nobody sees it."""
ITEMS: Any = object()
"""The slot of a list's items."""


_births = itertools.count()


class Slots(dict[Any, Any]):
    """What a value holds that may change, and when it was made: old values outlive the round of a loop."""

    __slots__ = ("born",)

    def __init__(self, held: Mapping[Any, Any] | None = None) -> None:
        super().__init__(held or {})
        self.born = next(_births)


class Names(Slots):
    """The slots of a scope: a name that only one of two branches gives is only used after that one."""

    __slots__ = ()


class Node:
    """A value and where it is written. ``assumed`` says why it may be given otherwise on a command line."""

    __slots__ = ("assumed", "file", "line", "value")

    def __init__(self, value: Any, file: str, line: int, assumed: str = "") -> None:
        self.value = value
        self.file = file
        self.line = line
        self.assumed = assumed


class Unsure(Open):
    """The value of a key that may not be there."""


class Mutable:
    """A value with slots that may change: attributes, keys, names, or the items of a list."""

    __slots__ = ("slots",)

    def __init__(self, slots: Mapping[Any, Any] | None = None) -> None:
        self.slots: Slots = slots if isinstance(slots, Slots) else Slots(slots)

    @property
    def opened(self) -> Open | None:
        found: Open | None = self.slots.get(OPENED)
        return found

    @property
    def is_forgotten(self) -> bool:
        """Whether nothing is known of it any more."""
        slots = self.slots
        return OPENED in slots and (len(slots) == 1 or (len(slots) == 2 and slots.get(ITEMS) == ()))


class ListValue(Mutable):
    """A list or tuple; its one slot holds the items."""

    __slots__ = ()

    def __init__(self, items: Iterable[Node] = ()) -> None:
        super().__init__({ITEMS: tuple(items)})

    @property
    def items(self) -> tuple[Node, ...]:
        found: tuple[Node, ...] = self.slots[ITEMS]
        return found


class DictValue(Mutable):
    """A mapping with plain keys."""

    __slots__ = ()

    @property
    def is_whole(self) -> bool:
        """Whether its keys are known."""
        return not self.opened and not any(isinstance(node.value, Unsure) for _, node in self.entries())

    def entries(self) -> list[tuple[Any, Node]]:
        return [(key, node) for key, node in self.slots.items() if key is not OPENED]


class Scope(Mutable):
    """Names, with the scope around them; ``elsewhere`` holds those that a function declares global or nonlocal."""

    __slots__ = ("around", "elsewhere", "is_class", "module", "path")

    def __init__(self, path: str, around: Scope | None = None, is_class: bool = False) -> None:
        super().__init__(Names())
        self.path = path
        self.around = around
        self.module: Scope = around.module if around else self
        self.is_class = is_class
        self.elsewhere: dict[str, Scope] = {}


class Module(NamedTuple):
    """A file of the user's own that a script imports."""

    scope: Scope


class Object(Mutable):
    """What a call of imported code returned; its slots are the attributes that were set or read since."""

    __slots__ = ("call", "given")

    def __init__(self, call: Call, given: Mapping[str, Node]) -> None:
        super().__init__()
        self.call = call
        self.given = given

    @property
    def has_settings(self) -> bool:
        """Whether its class keeps the arguments of its call as attributes."""
        return self.call.callee.endswith(("Config", "Arguments"))


class Part(Mutable):
    """An attribute of an object whose value is not known, by its path, as ``config`` of a model."""

    __slots__ = ("owner", "path")

    def __init__(self, owner: Object | Instance, path: str) -> None:
        super().__init__()
        self.owner = owner
        self.path = path


class OwnClass(Mutable):
    """A class of the script's own, with its bases; ``fields`` are those of a dataclass, by name."""

    __slots__ = ("bases", "fields", "is_dataclass", "name", "node")

    def __init__(self, node: ast.ClassDef, bases: tuple[object, ...], scope: Scope) -> None:
        super().__init__(scope.slots)
        self.node = node
        self.name = node.name
        self.bases = bases
        self.is_dataclass = False
        self.fields: dict[str, Field] = {}

    def lookup(self, name: str, depth: int = 10) -> Node | None:
        """The attribute as the class or its own ancestors have it."""
        if name in self.slots:
            found: Node = self.slots[name]
            return found
        own = (base.lookup(name, depth - 1) for base in self.bases if isinstance(base, OwnClass) and depth)
        return next(filter(None, own), None)

    @property
    def is_enum(self) -> bool:
        return any(isinstance(base, Reference) and base.name.startswith("enum.") for base in self.bases)

    def imported_base(self, depth: int = 10) -> Reference | None:
        """The imported class that it derives from."""
        for base in self.bases:
            if isinstance(base, Reference) and base.name not in _PLAIN_BASES:
                return base
            if isinstance(base, OwnClass) and depth and (found := base.imported_base(depth - 1)):
                return found
        return None

    def all_fields(self, depth: int = 10) -> dict[str, Field]:
        """The fields of it and its ancestors, in the order of the constructor."""
        fields: dict[str, Field] = {}
        for base in reversed(self.bases):
            if isinstance(base, OwnClass) and depth:
                fields |= base.all_fields(depth - 1)
        return {**fields, **self.fields}


_PLAIN_BASES = frozenset(("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "enum.Enum"))


class Field(NamedTuple):
    """A field of a dataclass: its default, or None where it must be given, and its annotation."""

    default: Callable[[], Node] | None
    annotation: ast.expr | None
    at: int


class Instance(Mutable):
    """An object of a class of the script's own, or a namespace of arguments, which has none.

    ``call`` is that of its imported base; ``lacking`` says why an attribute that is not among the slots is unknown.
    """

    __slots__ = ("call", "lacking", "own_class")

    def __init__(self, own_class: OwnClass | None, slots: Mapping[Any, Any] | None = None, lacking: str = "") -> None:
        super().__init__(slots)
        self.own_class = own_class
        self.call: Call | None = None
        self.lacking = lacking or "the value is set by code that is not run"


class FunctionValue:
    """A function of the script's own, with the scope it is defined in and the values of its parameters' defaults."""

    __slots__ = ("command", "defaults", "node", "options", "owner", "scope", "wrapped")

    def __init__(self, node: Function | ast.Lambda, scope: Scope, defaults: Mapping[str, Node]) -> None:
        self.node = node
        self.scope = scope
        self.defaults = defaults
        self.owner: OwnClass | None = None
        self.wrapped = ""
        self.command = ""
        self.options: list[Call] = []

    @property
    def name(self) -> str:
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name


class Bound(NamedTuple):
    """A method with its object."""

    function: FunctionValue
    owner: Node


class Partial(NamedTuple):
    """A callable with arguments that it will be given."""

    function: Node
    arguments: Arguments


class PathText(NamedTuple):
    """A ``pathlib`` path."""

    text: str


def join_paths(parts: Iterable[object]) -> PathText | Open:
    """The parts of a path together; `Open` where one is not known."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, PathText):
            texts.append(part.text)
        elif isinstance(part, str):
            texts.append(part)
        else:
            return part if isinstance(part, Open) else Open(NOT_RUN)
    return PathText(posixpath.join(*texts))


class Parser(Mutable):
    """A parser of arguments: an ``argparse`` one, whose slots are its options, or one that fills ``classes``."""

    __slots__ = ("classes",)

    def __init__(self, classes: tuple[Node, ...] = ()) -> None:
        super().__init__()
        self.classes = classes


class Super(NamedTuple):
    """``super()`` in a method of a class."""

    instance: Instance
    own_class: OwnClass


class Arguments(NamedTuple):
    """The arguments of one call; ``gap`` says why there may be more."""

    positional: tuple[Node, ...] = ()
    keywords: Mapping[str, Node] = {}
    gap: str = ""


Delta = dict[tuple[int, Any], tuple[Slots, Any, Any]]


class Heap:
    """All changes of slots in order, so that a branch can be followed and undone, and two be joined."""

    def __init__(self) -> None:
        self._log: list[tuple[Slots, Any, Any]] = []
        self.lost: dict[int, object] = {}
        """Values that an open one may stand for: a change to that may change them."""

    def write(self, slots: Slots, key: Any, value: Any) -> None:
        self._log.append((slots, key, slots.get(key, MISSING)))
        _put(slots, key, value)

    def open(self, value: Mutable, why: Open) -> None:
        """Forget what a value holds."""
        for key in [key for key in value.slots if key is not OPENED]:
            self.lose(value.slots[key])
            self.write(value.slots, key, () if isinstance(value, ListValue) else MISSING)
        self.write(value.slots, OPENED, why)

    def widen(self, slots: Slots, key: Any, why: Open, at: tuple[str, int], absent: bool = False) -> None:
        """Leave open what a slot holds, and if it was empty or ``absent`` says so whether it holds anything."""
        held = slots.get(key, MISSING)
        self.lose(held)
        if absent or may_be_absent(held):
            why = Unsure(why.why)
        if key is ITEMS:
            self.write(slots, ITEMS, ())
        self.write(slots, OPENED if key is ITEMS else key, why if key in (ITEMS, OPENED) else Node(why, *at))

    def lose(self, held: object) -> None:
        """Note the values of a slot that is left open."""
        for each in held if isinstance(held, tuple) else (held,):
            value = each.value if isinstance(each, Node) else None
            if isinstance(value, Object) and not value.slots and not value.has_settings:
                continue
            if isinstance(value, (Mutable, FunctionValue, Bound, Partial)):
                self.lost[id(value)] = value

    def lose_since(self, mark: int) -> None:
        """Note all values that the slots had which changed since a mark."""
        for slots, key, old in self._log[mark:]:
            self.lose(old)
            self.lose(slots.get(key))

    def mark(self) -> int:
        return len(self._log)

    def before(self, mark: int) -> Delta:
        """What the slots that changed since a mark held then."""
        found: Delta = {}
        for slots, key, old in self._log[mark:]:
            found.setdefault((id(slots), key), (slots, key, old))
        return found

    def changes(self, mark: int) -> Delta:
        """The slots that changed since a mark with what they held, or `MISSING` if they were or are empty."""
        found = self.before(mark)
        return found | {
            at: (slots, key, MISSING) for at, (slots, key, _) in found.items() if may_be_absent(slots.get(key, MISSING))
        }

    def now(self) -> int:
        """A point in time: slots that are born before it are older."""
        return next(_births)

    def undo(self, mark: int) -> Delta:
        """Go back to a mark; returns what the slots held that have changed since."""
        after: Delta = {at: (slots, key, slots.get(key, MISSING)) for at, (slots, key, _) in self.before(mark).items()}
        while len(self._log) > mark:
            _put(*self._log.pop())
        return after

    def join(self, ways: Sequence[Delta], why: Open, at: tuple[str, int]) -> None:
        """Hold what all ways agree on, each given by what it holds other than now."""
        places = {where: (slots, key) for way in ways for where, (slots, key, _) in way.items()}
        for where, (slots, key) in places.items():
            now = slots.get(key, MISSING)
            held = [way[where][2] if where in way else now for way in ways]
            joined = held[0]
            for other in held[1:]:
                joined = _join(joined, other, slots, key, why, at)
            if joined is OPENED or (isinstance(joined, Node) and joined.value is why):
                for each in held:
                    self.lose(each)
                self.widen(slots, key, why, at, any(each is MISSING for each in held))
            elif joined is not now:
                self.write(slots, key, joined)


def may_be_absent(held: Any) -> bool:
    """Whether a slot with this value may be empty."""
    return held is MISSING or (isinstance(held, Node) and isinstance(held.value, Unsure))


def _put(slots: Slots, key: Any, value: Any) -> None:
    if value is MISSING:
        slots.pop(key, None)
    else:
        slots[key] = value


def _join(left: Any, right: Any, slots: Slots, key: Any, why: Open, at: tuple[str, int]) -> Any:
    """What two ways leave in a slot; `OPENED` for the items of lists that differ."""
    if left is right:
        return left
    if key is OPENED:
        return why
    if key is ITEMS:
        return left if left is not OPENED and right is not OPENED and _is_same_list(left, right) else OPENED
    if left is MISSING or right is MISSING:
        present = right if left is MISSING else left
        return present if isinstance(slots, Names) and not hasattr(builtins, key) else Node(why, *at)
    if is_same(left.value, right.value) or (isinstance(slots, Names) and _is_import_with_fallback(left, right)):
        return left
    return Node(why, *at)


def _is_import_with_fallback(left: Node, right: Node) -> bool:
    """Whether a name is imported, and else imported from elsewhere or None, as old and new releases need it."""
    if not isinstance(left.value, Reference):
        return False
    other = right.value
    last = left.value.name.rpartition(".")[2]
    return other is None or (isinstance(other, Reference) and other.name.rpartition(".")[2] == last)


def _is_same_list(left: Sequence[Node], right: Sequence[Node]) -> bool:
    return len(left) == len(right) and all(is_same(one.value, other.value) for one, other in zip(left, right))


def is_same(left: object, right: object) -> bool:
    if isinstance(left, Reference):
        return left == right
    return left is right or (is_plain(left) and type(left) is type(right) and left == right)
