"""The calls of a script: into its own functions and classes, and those of imported code, which are noted."""

from __future__ import annotations

import abc
import ast
import contextlib
from collections.abc import Iterator, Mapping, Sequence

from compatcheck.environment import Location
from compatcheck.files import limits
from compatcheck.files.python_syntax import Function
from compatcheck.files.secrets import excerpt
from compatcheck.project.python_values import NOT_RUN, Open, Reference, is_plain
from compatcheck.project.script_calls._expressions import Expressions
from compatcheck.project.script_calls._heap import (
    MISSING,
    OPENED,
    Arguments,
    Bound,
    DictValue,
    FunctionValue,
    Instance,
    ListValue,
    Module,
    Mutable,
    Node,
    Object,
    OwnClass,
    Parser,
    Part,
    Partial,
    PathText,
    Scope,
    Super,
    is_same,
)
from compatcheck.project.script_calls._state import Flow, Frame, Raised
from compatcheck.project.script_calls.calls import Call

_MOST_CALL_BACKS = 8
_HARMLESS = frozenset(
    ("print", "isinstance", "issubclass", "type", "len", "repr", "sorted", "enumerate", "zip", "map", "filter", "id")
    + ("hash", "format", "input", "open", "reversed", "callable", "iter", "set", "frozenset", "hasattr", "range")
)
_LEAVE_DATA = frozenset(
    ("transformers", "datasets", "accelerate", "peft", "trl", "torch", "evaluate", "wandb", "logging", "json", "pprint")
)
"""Packages whose functions change no list, mapping or namespace that they are given."""
_KINDS: Mapping[type, str] = {
    str: "str",
    ListValue: "list",
    DictValue: "dict",
    PathText: "path",
    Parser: "parser",
    FunctionValue: "function",
}


class Invocation(Expressions):
    """Follows calls."""

    @abc.abstractmethod
    def block(self, statements: Sequence[ast.stmt]) -> Flow:
        """Follow statements."""

    def call(self, expression: ast.Call) -> Node:
        func = expression.func
        if isinstance(func, ast.Attribute):
            owner = self.value(func.value)
            return self._call_method(owner, func.attr, self._arguments(expression), expression)
        if isinstance(func, ast.Name) and func.id == "super" and not expression.args:
            return self._super(expression)
        function = self.value(func)
        return self.call_value(function, self._arguments(expression), expression)

    def _super(self, expression: ast.Call) -> Node:
        scope: Scope | None = self.scope
        while scope is not None:
            owner = scope.slots.get("__class__")
            if owner is not None:
                instance, own = owner.value
                if isinstance(instance, Instance):
                    return self.node(Super(instance, own), expression)
            scope = scope.around
        return self.node(Open(NOT_RUN), expression)

    def _arguments(self, expression: ast.Call) -> Arguments:
        positional: list[Node] = []
        keywords: dict[str, Node] = {}
        gap = ""
        for each in expression.args:
            if isinstance(each, ast.Starred):
                items = self.items_of(self.value(each.value))
                if items is None:
                    gap = gap or f"the contents of *{excerpt(ast.unparse(each.value), 40)} are unknown"
                elif not gap:
                    positional.extend(items)
            elif gap:
                self.value(each)
            else:
                positional.append(self.value(each))
        for keyword in expression.keywords:
            node = self.value(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = node
                continue
            value = self.mapping_of(node.value)
            if isinstance(value, DictValue):
                self.spend(len(value.slots))
                keywords |= {key: each for key, each in value.entries() if isinstance(key, str)}
            if not isinstance(value, DictValue) or value.opened:
                gap = gap or f"the contents of **{excerpt(ast.unparse(keyword.value), 40)} are unknown"
        return Arguments(tuple(positional), keywords, gap)

    def _call_method(self, owner: Node, name: str, arguments: Arguments, at: ast.Call) -> Node:
        value = owner.value
        if isinstance(value, (Object, Part, Open)):
            return self.call_object(owner, name, arguments, at)
        if isinstance(value, (Instance, Super)):
            method = self._instance_attribute(value, name, owner, at)
            if isinstance(value, Super) and isinstance(method.value, Open):
                return self._call_inherited(value, name, arguments, at)
            if isinstance(method.value, (Open, Part)):
                return self.call_object(owner, name, arguments, at)
            return self.call_value(method, arguments, at)
        if isinstance(value, (Reference, Module, OwnClass)):
            return self.call_value(self.read_attribute(owner, name, at), arguments, at)
        handler = self._library.get(f"{_kind(value)}.{name}")
        if handler:
            result = handler(self, Arguments((owner, *arguments.positional), arguments.keywords, arguments.gap), at)
            return result if isinstance(result, Node) else self.node(result, at)
        if isinstance(value, Mutable):
            self.heap.open(value, Open(NOT_RUN))
        self._escape_all(arguments, at)
        return self.node(Open(NOT_RUN), at)

    def call_value(self, function: Node, arguments: Arguments, at: ast.AST) -> Node:
        """Call a callable value."""
        value = function.value
        if isinstance(value, Reference):
            return self._call_reference(value, arguments, at)
        if isinstance(value, FunctionValue):
            return self._call_function(value, arguments, at)
        if isinstance(value, Bound):
            return self._call_function(
                value.function, arguments._replace(positional=(value.owner, *arguments.positional)), at
            )
        if isinstance(value, OwnClass):
            return self._instantiate(value, arguments, at)
        if isinstance(value, Partial):
            inner = value.arguments
            together = Arguments(
                (*inner.positional, *arguments.positional),
                {**inner.keywords, **arguments.keywords},
                inner.gap or arguments.gap,
            )
            return self.call_value(value.function, together, at)
        if isinstance(value, Instance) and value.own_class and (method := value.own_class.lookup("__call__")):
            return self.call_value(self._bind(method.value, function, at), arguments, at)
        if isinstance(value, (Object, Part, Instance)):
            return self.call_object(function, "", arguments, at)
        self._escape_all(arguments, at)
        self.escape(value, at)
        return self.node(value if isinstance(value, Open) else Open(NOT_RUN), at)

    def _call_reference(self, value: Reference, arguments: Arguments, at: ast.AST) -> Node:
        handler = self._library.get(value.name)
        if handler:
            result = handler(self, arguments, at)
            if result is not NotImplemented:
                return result if isinstance(result, Node) else self.node(result, at)
        if value.name.startswith("builtins."):
            if value.name.rpartition(".")[2] not in _HARMLESS:
                self._escape_all(arguments, at)
            return self.node(Open(f"{value.name[9:]}(...) is called, but no code is run"), at)
        return self.record(value.name, arguments, at)

    def record(self, callee: str, arguments: Arguments, at: ast.AST, owner: object = None) -> Node:
        """Note a call of imported code; its result is an object that nothing more is known of."""
        call = self.made_call(callee, arguments, at, owner)
        self.calls.append(call)
        if not callee.rpartition(".")[2][:1].isupper() and not callee.endswith(".from_pretrained"):
            leaves_data = _origin(call).partition(".")[0] in _LEAVE_DATA
            for each in (*arguments.positional, *arguments.keywords.values()):
                if not (is_plain(each.value) or (leaves_data and _is_data(each.value))):
                    self.escape(each.value, at)
        return self.node(Object(call, arguments.keywords), at)

    def made_call(self, callee: str, arguments: Arguments, at: ast.AST, owner: object = None) -> Call:
        places: dict[int | str, Location] = {i: self.place(each) for i, each in enumerate(arguments.positional)}
        places |= {name: self.place(each) for name, each in arguments.keywords.items()}
        return Call(
            callee,
            Location(*self.at(at)),
            tuple(self.plain(each.value) for each in arguments.positional),
            {name: self.plain(each.value) for name, each in arguments.keywords.items()},
            places,
            self.plain(owner) if owner is not None else None,
            arguments.gap,
            self.doubt,
        )

    def call_object(self, owner: Node, name: str, arguments: Arguments, at: ast.AST) -> Node:
        """A method of an object, or without a name the object itself, is called."""
        value = owner.value
        path = name
        if isinstance(value, Part):
            path = f"{value.path}.{name}" if name else value.path
            value = value.owner
        special = self._library.get(f"{value.call.callee}().{path}") if isinstance(value, Object) else None
        if special:
            result = special(self, value, arguments, at)
            return result if isinstance(result, Node) else self.node(result, at)
        made = self.record(f".{path}" if path else ".__call__", arguments, at, value)
        if isinstance(value, Open):
            self.change_lost(at)
        return made

    def _call_inherited(self, value: Super, name: str, arguments: Arguments, at: ast.AST) -> Node:
        base = value.own_class.imported_base()
        if base is None:
            return self.node(None if name == "__init__" else Open(NOT_RUN), at)
        if name != "__init__":
            return self.record(f".{name}", arguments, at, value.instance)
        call = self.made_call(base.name, arguments, at)
        value.instance.call = call
        self.calls.append(call)
        return self.node(None, at)

    def _escape_all(self, arguments: Arguments, at: ast.AST) -> None:
        for each in (*arguments.positional, *arguments.keywords.values()):
            if not is_plain(each.value):
                self.escape(each.value, at)

    def escape(self, value: object, at: ast.AST, depth: int = 6) -> None:
        """A value is in the hands of code that is not followed and may have changed."""
        if isinstance(value, (ListValue, DictValue)):
            inner = value.items if isinstance(value, ListValue) else [node for _, node in value.entries()]
            for each in inner if depth else ():
                if not is_plain(each.value):
                    self.escape(each.value, at, depth - 1)
            self.heap.open(
                value, Open(f"the code that is called in line {getattr(at, 'lineno', 1)} may change the value")
            )
        elif isinstance(value, (Object, Instance)):
            if not value.is_forgotten:
                why = Open(f"the code that is called in line {getattr(at, 'lineno', 1)} may change the value")
                self.heap.open(value, why)
        elif isinstance(value, Open):
            self.change_lost(at)
        elif isinstance(value, Partial):
            self.escape(value.function.value, at, depth)
        elif isinstance(value, Bound):
            self._call_back(value.function, at, value.owner)
        elif isinstance(value, FunctionValue):
            self._call_back(value, at)

    def _call_back(self, function: FunctionValue, at: ast.AST, owner: Node | None = None) -> None:
        """Code that is not followed may call a function: its calls are seen, and what it changes is open."""
        times = self._call_backs[function.node]
        if self._depth >= limits.CALLS_DEPTH or function.node in self._active or times >= _MOST_CALL_BACKS:
            self._apply_effects(function, at)
            return
        self._call_backs[function.node] += 1
        names = parameter_names(function.node)
        given = {
            name: self.node(Open(f"{name} is set by the code that calls {function.name}"), function.node)
            for name in names
        }
        if owner is not None and names:
            given[names[0]] = owner
        mark, began = self.heap.mark(), self.heap.now()
        with contextlib.suppress(Raised):
            self._enter(function, given, at)
        self.heap.lose_since(mark)
        effects = self._effects.setdefault(function.node, {})
        for where, (slots, key, new) in self.heap.undo(mark).items():
            if slots.born < began:
                held = effects.get(where)
                effects[where] = slots, key, new is MISSING or bool(held and held[2])
        self._apply_effects(function, at)

    def _apply_effects(self, function: FunctionValue, at: ast.AST) -> None:
        """Leave open what a function was seen to change."""
        why = Open(f"{function.name} may change the value")
        for slots, key, may_remove in self._effects.get(function.node, {}).values():
            self.heap.widen(slots, key, why, self.at(at), may_remove)

    def _call_function(self, function: FunctionValue, arguments: Arguments, at: ast.AST) -> Node:
        if function.command and not arguments.positional and not arguments.keywords:
            handler = self._library["command"]
            arguments = handler(self, function, at)
        recursive = function.node in self._active
        if self._depth >= limits.CALLS_DEPTH or recursive or "?" in function.wrapped:
            self._escape_all(arguments, at)
            if not recursive and self._depth < limits.CALLS_DEPTH:
                self._call_back(function, at)
            return self.node(Open(f"{function.name}(...) is called, but no code is run"), at)
        return self._enter(function, self._bound(function, arguments, at), at)

    def _bound(self, function: FunctionValue, arguments: Arguments, at: ast.AST) -> dict[str, Node]:
        """The values of a function's parameters in a call."""
        args = function.node.args
        named = [each.arg for each in (*args.posonlyargs, *args.args)]
        names = [*named, *(each.arg for each in args.kwonlyargs)]
        given = dict(zip(named, arguments.positional))
        for name in names:
            if name in arguments.keywords:
                given[name] = arguments.keywords[name]
            elif name not in given:
                open_node = self.node(
                    Open(arguments.gap or f"{name} is not given in line {getattr(at, 'lineno', 1)}"), at
                )
                given[name] = open_node if arguments.gap else function.defaults.get(name, open_node)
        if args.vararg:
            rest = arguments.positional[len(named) :]
            given[args.vararg.arg] = self.node(Open(arguments.gap) if arguments.gap else ListValue(rest), at)
        if args.kwarg:
            extra = DictValue({key: node for key, node in arguments.keywords.items() if key not in names})
            if arguments.gap:
                extra.slots[OPENED] = Open(arguments.gap)
            given[args.kwarg.arg] = self.node(extra, at)
        return given

    def _enter(self, function: FunctionValue, given: Mapping[str, Node], at: ast.AST) -> Node:
        """Follow a function with the values of its parameters; returns what it returns."""
        self.called.add(function.node)
        before, self.scope = self.scope, Scope(function.scope.path, function.scope)
        active, self._active = self._active, (*self._active, function.node)
        self._depth += 1
        frame = Frame((Flow.RETURN,))
        self._frames.append(frame)
        try:
            self.scope.slots.update(given)
            names = parameter_names(function.node)
            if function.owner and names and names[0] in given:
                self.scope.slots["__class__"] = Node((given[names[0]].value, function.owner), function.scope.path, 1)
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body)
            if self.has_declarations:
                self.block(_declarations(function.node))
            try:
                flow = self.block(function.node.body)
            except Raised:
                if not frame.exits:
                    raise
                flow = Flow.RETURN
            self._join_exits(frame, (Flow.RETURN,), at)
            return self._result(function.node, frame, flow, at)
        finally:
            self._frames.pop()
            self._depth -= 1
            self.scope, self._active = before, active

    def _result(self, function: Function, frame: Frame, flow: Flow, at: ast.AST) -> Node:
        if isinstance(function, ast.AsyncFunctionDef) or (self.has_generators and _is_generator(function)):
            return self.node(Open(f"{function.name} is a generator or coroutine, which is not followed"), at)
        ends = list(frame.returned)
        if flow is not Flow.RETURN:
            ends.append(self.node(None, at))
        if all(is_same(ends[0].value, each.value) for each in ends[1:]):
            return ends[0]
        self.heap.lose(tuple(ends))
        return self.node(Open(f"{function.name} returns different values"), at)

    def _instantiate(self, own: OwnClass, arguments: Arguments, at: ast.AST) -> Node:
        instance = Instance(own)
        self.called.add(own.node)
        if own.lookup("__new__") or own.node.keywords:
            self._escape_all(arguments, at)
            return self.node(Open(NOT_RUN), at)
        init = own.lookup("__init__")
        base = own.imported_base()
        if init is not None and isinstance(init.value, FunctionValue):
            made = self.node(instance, at)
            bound = arguments._replace(positional=(made, *arguments.positional))
            self._call_function(init.value, bound, at)
            return made
        if base is not None:
            fields = {name: field for name, field in own.all_fields().items() if field.default}
            keywords = {name: field.default() for name, field in fields.items() if own.is_dataclass and field.default}
            whole = Arguments(arguments.positional, {**keywords, **arguments.keywords}, arguments.gap)
            call = self.made_call(base.name, whole, at)
            self.calls.append(call)
            instance.call = call
            if arguments.gap or (arguments.positional and not own.is_dataclass):
                instance.slots[OPENED] = Open(arguments.gap or "the class takes positional arguments")
            instance.slots.update(whole.keywords)
            self.after_init(instance, own, at)
            return self.node(instance, at)
        if own.is_dataclass:
            self._fill(instance, own, arguments, at)
        return self.node(instance, at)

    def _fill(self, instance: Instance, own: OwnClass, arguments: Arguments, at: ast.AST) -> None:
        fields = own.all_fields()
        given = {**dict(zip(fields, arguments.positional)), **arguments.keywords}
        for name, field in fields.items():
            if name in given:
                instance.slots[name] = given[name]
            elif arguments.gap or field.default is None:
                instance.slots[name] = self.node(Open(arguments.gap or f"{name} is not given"), at)
            else:
                instance.slots[name] = field.default()
        self.after_init(instance, own, at)

    def after_init(self, instance: Instance, own: OwnClass, at: ast.AST) -> None:
        after = own.lookup("__post_init__")
        if after is not None and isinstance(after.value, FunctionValue):
            self._call_function(after.value, Arguments((self.node(instance, at),)), at)


def _origin(call: Call) -> str:
    """The imported name that an object or its method comes from."""
    while call.callee.startswith(".") and isinstance(call.owner, Call):
        call = call.owner
    return call.callee


def _is_data(value: object) -> bool:
    """Whether a value is settings of the script's own, not an object of a library."""
    return isinstance(value, (ListValue, DictValue, Open)) or (isinstance(value, Instance) and value.call is None)


def _kind(value: object) -> str:
    """The type of a value by the name that the table of methods has for it."""
    return _KINDS.get(type(value), "other")


def parameter_names(function: Function | ast.Lambda) -> list[str]:
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    return [each.arg for each in every]


def _is_generator(function: Function) -> bool:
    """Whether a function yields, itself and not in one that it defines."""
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in _own_nodes(function))


def _declarations(function: Function) -> list[ast.stmt]:
    """The ``global`` and ``nonlocal`` statements of a function, which hold in all of it."""
    return [node for node in _own_nodes(function) if isinstance(node, (ast.Global, ast.Nonlocal))]


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function's code without those of the functions and classes that it defines."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
