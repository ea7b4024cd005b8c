"""Where a script is while it is followed: what it holds, in which branch it is, and what was seen of it."""

from __future__ import annotations

import ast
import enum
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compatcheck.environment import Location
from compatcheck.files import limits
from compatcheck.files.reading import OversizeError
from compatcheck.project.python_values import NOT_RUN, OUT_OF_PROPORTION, Open, Reference, is_plain
from compatcheck.project.script_calls._heap import (
    MISSING,
    Delta,
    DictValue,
    FunctionValue,
    Heap,
    Instance,
    ListValue,
    Mutable,
    Node,
    Object,
    Part,
    PathText,
    Scope,
    Slots,
)
from compatcheck.project.script_calls.calls import Assignment, Call, CommandLine

DOING = "reading the Python script"


class Flow(enum.Enum):
    """How a block ends."""

    NEXT = enum.auto()
    RETURN = enum.auto()
    BREAK = enum.auto()
    CONTINUE = enum.auto()


class Raised(Exception):  # noqa: N818 - it is the script that raises
    """The script ends here, or goes on in an ``except`` clause."""


class Frame:
    """A function or loop that is being followed: where it may have been left already."""

    def __init__(self, ends: tuple[Flow, ...]) -> None:
        self.ends = ends
        self.exits: list[tuple[Flow, int, Delta]] = []
        self.returned: list[Node] = []
        self.doubt = ""


class State:
    """What is followed in the branches of a script; `calls` and `assignments` are what it was seen to do."""

    def __init__(self, command: CommandLine | None, library: Mapping[str, Any], importer: Any) -> None:
        self.command = command
        self.heap = Heap()
        self.calls: list[Call] = []
        self.assignments: list[Assignment] = []
        self.imports: set[str] = set()
        self.functions: list[FunctionValue] = []
        self.star_import = ""
        self.has_generators = False
        self.has_declarations = False
        self._library = library
        self._importer = importer
        self._frames: list[Frame] = []
        self._depth = 0
        self._steps = 0
        self._quick = False
        self._active: tuple[ast.AST, ...] = ()
        self._call_backs: Counter[ast.AST] = Counter()
        self._effects: dict[ast.AST, dict[tuple[int, Any], tuple[Slots, Any, bool]]] = {}
        self.called: set[ast.AST] = set()
        self._losing = False
        self._tried: list[Delta] = []
        self._rounds = 1
        self.scope = Scope("")

    def note_words(self, text: str) -> None:
        """See what its functions need not be searched for."""
        self.has_generators |= "yield" in text
        self.has_declarations |= "global " in text or "nonlocal " in text

    @property
    def doubt(self) -> str:
        return next((frame.doubt for frame in self._frames if frame.doubt), "")

    def spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > limits.SCRIPT_STEPS:
            raise OversizeError(DOING, self.scope.path, "this is far too large", "pass an ordinary script")

    def _in_doubt(self, why: str, way: Callable[[], Flow | None]) -> Flow | None:
        frame = Frame(())
        frame.doubt = why
        self._frames.append(frame)
        try:
            return way()
        finally:
            self._frames.pop()

    def fork(self, ways: Sequence[tuple[str, Callable[[], Flow | None]]], why: Open, at: ast.AST) -> Flow:
        """Follow each of several ways, with its doubt, from what is known now; what they agree on is known after."""
        ends: list[tuple[Flow, Delta]] = []
        mark = self.heap.mark()
        for doubt, way in ways:
            before = self._count_exits()
            try:
                flow = self._in_doubt(doubt, way) or Flow.NEXT
            except Raised:
                flow = None
                self.heap.lose_since(mark)
            self._rebase_exits(before, mark)
            delta = self.heap.undo(mark)
            if flow is not None:
                ends.append((flow, delta))
                continue
            for changed in self._tried:
                changed.update(delta)
        if not ends:
            raise Raised
        going_on = [delta for flow, delta in ends if flow is Flow.NEXT]
        left = [(flow, delta) for flow, delta in ends if flow is not Flow.NEXT]
        if not going_on and len({flow for flow, _ in left}) == 1:
            going_on, flow, left = [delta for _, delta in left], left[0][0], []
        else:
            flow = Flow.NEXT
        for kind, delta in left:
            self._note_exit(kind, delta, at)
        if going_on:
            self.heap.join(going_on, why, self.at(at))
            return flow
        return left[0][0]

    def _note_exit(self, kind: Flow, delta: Delta, at: ast.AST) -> None:
        """The function or loop around may have been left: what comes later in it may not happen."""
        for frame in reversed(self._frames):
            if kind in frame.ends:
                frame.exits.append((kind, self.heap.mark(), delta))
                frame.doubt = frame.doubt or f"the code may jump elsewhere from line {getattr(at, 'lineno', 1)}"
                return

    def _count_exits(self) -> list[tuple[Frame, int]]:
        return [(frame, len(frame.exits)) for frame in self._frames]

    def _rebase_exits(self, counted: list[tuple[Frame, int]], mark: int) -> None:
        """State the exits noted since against an earlier mark, before what came after it is undone."""
        for frame, count in counted:
            for i in range(count, len(frame.exits)):
                kind, at, delta = frame.exits[i]
                later = self.heap.before(at)
                held = {
                    where: later.get(where, (slots, key, slots.get(key, MISSING)))
                    for where, (slots, key, _) in self.heap.before(mark).items()
                }
                frame.exits[i] = kind, mark, {**held, **delta}

    def _join_exits(self, frame: Frame, kinds: tuple[Flow, ...], at: ast.AST) -> None:
        """Join what is held now with what was held where the block may have been left."""
        exits = [each for each in frame.exits if each[0] in kinds]
        frame.exits = [each for each in frame.exits if each[0] not in kinds]
        for _, mark, delta in exits:
            self.heap.join([{}, {**self.heap.before(mark), **delta}], Open(NOT_RUN), self.at(at))

    def node(self, value: object, at: ast.AST, assumed: str = "") -> Node:
        return Node(value, self.scope.path, getattr(at, "lineno", 1), assumed)

    def at(self, at: ast.AST) -> tuple[str, int]:
        return self.scope.path, getattr(at, "lineno", 1)

    def location(self, at: ast.AST) -> Location:
        return Location(*self.at(at))

    def place(self, node: Node) -> Location:
        return Location(node.file, node.line)

    def plain(self, value: object, depth: int = 12) -> object:
        """A value as calls are given it: it does not change later."""
        if is_plain(value) or isinstance(value, (Open, Reference)):
            return value
        self.spend(1)
        if isinstance(value, Mutable) and not depth:
            return Open(OUT_OF_PROPORTION)
        if isinstance(value, (ListValue, DictValue)) and value.opened:
            return value.opened
        if isinstance(value, ListValue):
            return [self.plain(each.value, depth - 1) for each in value.items]
        if isinstance(value, DictValue):
            return {key: self.plain(node.value, depth - 1) for key, node in value.entries()}
        if isinstance(value, Object) or (isinstance(value, Instance) and value.call):
            return value.call
        if isinstance(value, Part):
            return Open(f"the code that makes an object sets its {value.path}")
        if isinstance(value, PathText):
            return value.text
        return Open(NOT_RUN)
