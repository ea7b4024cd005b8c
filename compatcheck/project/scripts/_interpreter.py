"""Follow the statements of a script with the values it gives, and note what it calls; nothing of it is run."""

from __future__ import annotations

import ast
import builtins
import contextlib
import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compatcheck.environment import Location
from compatcheck.files.python_syntax import Function
from compatcheck.files.reading import OversizeError
from compatcheck.project.python_values import (
    LARGEST_NUMBER,
    LONGEST,
    NOT_RUN,
    OUT_OF_PROPORTION,
    Open,
    Reference,
    apply_sign,
    combine,
    compare,
    is_plain,
    truth_of,
)
from compatcheck.project.scripts._heap import (
    ITEMS,
    MISSING,
    OPENED,
    Arguments,
    Bound,
    Delta,
    DictValue,
    Field,
    FunctionValue,
    Heap,
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
    Unsure,
    is_same,
    join_paths,
)
from compatcheck.project.scripts.calls import Assignment, Call, CommandLine

DOING = "reading the Python script"
_MOST_STEPS = 300_000
_DEEPEST = 12
_MOST_ROUNDS = 64
_BUILTINS = frozenset(dir(builtins))
_HARMLESS = frozenset(
    ("print", "isinstance", "issubclass", "type", "len", "repr", "sorted", "enumerate", "zip", "map", "filter", "id")
    + ("hash", "format", "input", "open", "reversed", "callable", "iter", "set", "frozenset", "hasattr", "range")
)
_UNSHADOWED = frozenset(
    ("dict", "list", "tuple", "str", "len", "range", "getattr", "print", "isinstance", "open", "super")
)
_TRANSPARENT = frozenset(
    ("no_grad", "inference_mode", "wraps", "lru_cache", "cache", "record", "abstractmethod", "override", "dataclass")
    + ("find_executable_batch_size", "contextmanager", "overload", "on_local_main_process", "on_main_process")
)
_KINDS: Mapping[type, str] = {
    str: "str",
    ListValue: "list",
    DictValue: "dict",
    PathText: "path",
    Parser: "parser",
    FunctionValue: "function",
}


class Flow(enum.Enum):
    """How a block ends."""

    NEXT = enum.auto()
    RETURN = enum.auto()
    BREAK = enum.auto()
    CONTINUE = enum.auto()


class Raised(Exception):  # noqa: N818 - it is the script that raises
    """The script ends here, or goes on in an ``except`` clause."""


class _Frame:
    """A function or loop that is being followed: where it may have been left already."""

    def __init__(self, ends: tuple[Flow, ...]) -> None:
        self.ends = ends
        self.exits: list[tuple[Flow, int, Delta]] = []
        self.returned: list[Node] = []
        self.doubt = ""


class Interpreter:
    """Follows one script; `calls` and `assignments` are what it was seen to do."""

    def __init__(self, command: CommandLine | None, library: Mapping[str, Any], importer: Any) -> None:
        self.command = command
        self.heap = Heap()
        self.calls: list[Call] = []
        self.assignments: list[Assignment] = []
        self.imports: set[str] = set()
        self.functions: list[FunctionValue] = []
        self.star_import = ""
        self.has_generators = False
        self._library = library
        self._importer = importer
        self._frames: list[_Frame] = []
        self._depth = 0
        self._steps = 0
        self._quick = False
        self._losing = False
        self._tried: list[Delta] = []
        self._rounds = 1
        self.scope = Scope("")
        self._expressions: dict[type, Callable[[Any], Node]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self._call,
            ast.List: self._sequence,
            ast.Tuple: self._sequence,
            ast.Dict: self._dict,
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.Compare: self._compare,
            ast.BoolOp: self._boolean,
            ast.IfExp: self._conditional,
            ast.JoinedStr: self._joined,
            ast.Lambda: self._lambda,
            ast.NamedExpr: self._named,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension,
        }
        self._statements: dict[type, Callable[[Any], Flow | None]] = {
            ast.Expr: self._expression_statement,
            ast.Assign: self._assign_statement,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augment,
            ast.If: self._if,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: self._while,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Try: self._try,
            ast.FunctionDef: self._define,
            ast.AsyncFunctionDef: self._define,
            ast.ClassDef: self._class,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.Break: lambda _: Flow.BREAK,
            ast.Continue: lambda _: Flow.CONTINUE,
            ast.Global: self._global,
            ast.Nonlocal: self._global,
            ast.Delete: self._delete,
            ast.Assert: self._assert,
            ast.Match: self._match,
        }

    # -- blocks and branches

    @property
    def doubt(self) -> str:
        return next((frame.doubt for frame in self._frames if frame.doubt), "")

    def run_module(self, tree: ast.Module, scope: Scope, name: str) -> None:
        """Follow a file from top to bottom."""
        before, self.scope = self.scope, scope
        scope.slots["__name__"] = Node(name, scope.path, 1)
        scope.slots["__file__"] = Node(scope.path, scope.path, 1)
        frames, self._frames = self._frames, [*self._frames, _Frame((Flow.RETURN, Flow.BREAK, Flow.CONTINUE))]
        try:
            self.block(tree.body)
        except Raised:
            pass
        finally:
            self.scope, self._frames = before, frames

    def run_uncalled(self) -> None:
        """Follow the functions that nothing in the file calls: others may."""
        done = 0
        while done < len(self.functions):
            waiting, done = self.functions[done:], len(self.functions)
            for function in reversed(waiting):
                if not function.called:
                    self._run_uncalled(function)

    def _run_uncalled(self, function: FunctionValue) -> None:
        names = _parameters(function.node)
        given = {
            name: self.node(Open(f"{name} is a parameter that the file does not give"), function.node) for name in names
        }
        given |= function.defaults
        owner = function.owner
        if owner is not None and names and "staticmethod" not in function.wrapped:
            instance = Instance(owner, {OPENED: Open("other code sets it")})
            given[names[0]] = self.node(owner if "classmethod" in function.wrapped else instance, function.node)
        mark = self.heap.mark()
        frame = _Frame(())
        frame.doubt = f"nothing in the file calls {function.name}"
        self._frames.append(frame)
        try:
            self._enter(function, given, function.node)
        except Raised:
            pass
        finally:
            self._frames.pop()
            self.heap.undo(mark)

    def block(self, statements: Sequence[ast.stmt]) -> Flow:
        for statement in statements:
            self.spend(1)
            run = self._statements.get(type(statement))
            flow = run(statement) if run else None
            if flow is not None and flow is not Flow.NEXT:
                return flow
        return Flow.NEXT

    def spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise OversizeError(DOING, self.scope.path, "it is out of all proportion", "give an ordinary script")

    def _in_doubt(self, why: str, way: Callable[[], Flow | None]) -> Flow | None:
        frame = _Frame(())
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
            try:
                flow = self._in_doubt(doubt, way) or Flow.NEXT
            except Raised:
                self.heap.lose_since(mark)
                delta = self.heap.undo(mark)
                for changed in self._tried:
                    changed.update(delta)
                continue
            ends.append((flow, self.heap.undo(mark)))
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
                frame.doubt = frame.doubt or f"the code may go on elsewhere from line {getattr(at, 'lineno', 1)}"
                return

    def _join_exits(self, frame: _Frame, kinds: tuple[Flow, ...], at: ast.AST) -> None:
        """Join what is held now with what was held where the block may have been left."""
        exits = [each for each in frame.exits if each[0] in kinds]
        frame.exits = [each for each in frame.exits if each[0] not in kinds]
        for _, mark, delta in exits:
            self.heap.join([{}, {**self.heap.before(mark), **delta}], Open(NOT_RUN), self.at(at))

    # -- statements

    def _expression_statement(self, statement: ast.Expr) -> None:
        if not isinstance(statement.value, ast.Constant):
            self.value(statement.value)

    def _assign_statement(self, statement: ast.Assign) -> None:
        node = self.value(statement.value)
        for target in statement.targets:
            self.assign(target, node)

    def _annotated(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self.assign(statement.target, self.value(statement.value))

    def _augment(self, statement: ast.AugAssign) -> None:
        target = statement.target
        if isinstance(target, ast.Name):
            held = self._name(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        elif isinstance(target, ast.Attribute):
            held = self.read_attribute(self.value(target.value), target.attr, target)
        else:
            held = self.read_item(self.value(target.value), self.value(target.slice), target)
        added = self.value(statement.value)
        if isinstance(held.value, Open):
            self.change_lost(statement)
        if isinstance(held.value, ListValue) and isinstance(statement.op, ast.Add):
            self._extend(held.value, added)
        elif isinstance(held.value, DictValue) and isinstance(statement.op, ast.BitOr):
            self._library["dict.update"](self, Arguments((held, added)), statement)
        else:
            self.assign(target, self._combined(statement.op, held, added, statement))

    def _extend(self, extended: ListValue, added: Node) -> None:
        if isinstance(added.value, ListValue) and not added.value.opened and not extended.opened:
            self.write_items(extended, (*extended.items, *added.value.items))
        else:
            self.heap.open(extended, Open(NOT_RUN))

    def write_items(self, target: ListValue, items: tuple[Node, ...]) -> None:
        self.spend(len(items))
        if len(items) > LONGEST:
            self.heap.open(target, Open(OUT_OF_PROPORTION))
        else:
            self.heap.write(target.slots, ITEMS, items)

    def _if(self, statement: ast.If) -> Flow:
        test = self.value(statement.test)
        truth = self.truth(test)
        line = statement.test.lineno
        if truth is None:
            why = Open(f"it depends on a condition in line {line}")
            doubt = f"it depends on the condition in line {line}"
            return self.fork(
                [(doubt, lambda: self.block(statement.body)), (doubt, lambda: self.block(statement.orelse))],
                why,
                statement,
            )
        taken, other = (statement.body, statement.orelse) if truth else (statement.orelse, statement.body)
        if not test.assumed:
            return self.block(taken)
        if other:
            self._look_into(lambda: self.block(other), statement.test, test.assumed)
        mark = self.heap.mark()
        try:
            return self.block(taken)
        except Raised:
            self.heap.undo(mark)
            self._doubt_defaults(statement.test)
            return self.block(other)

    def _doubt_defaults(self, test: ast.expr) -> None:
        """The defaults in a condition do not hold where it is decided the other way."""
        for inner in ast.walk(test):
            if isinstance(inner, ast.Attribute):
                owner = self.value(inner.value).value
                held = owner.slots.get(inner.attr) if isinstance(owner, Instance) else None
                if held is not None and held.assumed:
                    why = Open(f"{held.assumed} is given otherwise")
                    self.heap.write(owner.slots, inner.attr, Node(why, held.file, held.line))
            elif isinstance(inner, ast.Name) and self._name(inner).assumed:
                self.assign(inner, self.node(Open("it is given otherwise"), inner))

    def _look_into(self, way: Callable[[], object], test: ast.expr, assumed: str) -> None:
        """See the calls of code that runs only if a default does not hold, and undo the rest."""
        mark = self.heap.mark()
        frames, self._frames = self._frames, [*self._frames, _Frame(tuple(Flow))]
        self._frames[-1].doubt = self.doubt or f"it happens only if {assumed} is given otherwise"
        try:
            self._doubt_defaults(test)
            way()
        except Raised:
            pass
        finally:
            self._frames = frames
            self.heap.undo(mark)

    def _for(self, statement: ast.For | ast.AsyncFor) -> Flow:
        rounds = self.items_of(self.value(statement.iter))
        if rounds is None or len(rounds) * self._rounds > _MOST_ROUNDS:
            each = self.node(Open(f"it is different in each round of the loop in line {statement.lineno}"), statement)
            self.heap.lose(rounds)
            return self._loop(statement, lambda: self.assign(statement.target, each))
        frame = _Frame((Flow.BREAK, Flow.CONTINUE))
        self._frames.append(frame)
        around, self._rounds = self._rounds, self._rounds * max(1, len(rounds))
        flow = Flow.NEXT
        try:
            for item in rounds:
                self.assign(statement.target, item)
                flow = self.block(statement.body)
                self._join_exits(frame, (Flow.CONTINUE,), statement)
                if flow in (Flow.BREAK, Flow.RETURN):
                    break
        finally:
            self._frames.pop()
            self._rounds = around
        ended = flow
        if ended in (Flow.NEXT, Flow.CONTINUE):
            ended = self._else(statement, Open(NOT_RUN)) if frame.exits else self.block(statement.orelse)
        self._join_exits(frame, (Flow.BREAK,), statement)
        return Flow.NEXT if ended is Flow.BREAK and flow is Flow.BREAK else ended

    def _while(self, statement: ast.While) -> Flow:
        def test() -> None:
            self.value(statement.test)

        if self.truth(self.value(statement.test)) is False:
            return self.block(statement.orelse)
        return self._loop(statement, test)

    def _loop(self, statement: ast.For | ast.AsyncFor | ast.While, start: Callable[[], None]) -> Flow:
        """Follow one round that stands for all: what any round changes is open from the start."""
        why = Open(f"it changes in the loop in line {statement.lineno}")
        began = self.heap.now()
        widened: set[tuple[int, Any]] = set()
        quick, self._quick = self._quick, True
        for last in (False, False, False, True):
            noted = len(self.calls), len(self.assignments), len(self.functions)
            mark = self.heap.mark()
            self._round(statement, start)
            changed = {where: each for where, each in self.heap.before(mark).items() if each[0].born < began}
            self._quick = quick
            self.heap.lose_since(mark)
            if last or quick or changed.keys() <= widened:
                break
            self.heap.undo(mark)
            del self.calls[noted[0] :], self.assignments[noted[1] :], self.functions[noted[2] :]
            widened |= changed.keys()
            for slots, key, _ in changed.values():
                self.heap.widen(slots, key, why, self.at(statement))
        for slots, key, _ in changed.values():
            self.heap.widen(slots, key, why, self.at(statement))
        return self._else(statement, why)

    def _else(self, statement: ast.For | ast.AsyncFor | ast.While, why: Open) -> Flow:
        """The ``else`` of a loop that may have been left."""
        if not statement.orelse:
            return Flow.NEXT
        doubt = f"it happens only if the loop in line {statement.lineno} is not left"
        return self.fork([(doubt, lambda: self.block(statement.orelse)), (doubt, lambda: None)], why, statement)

    def _round(self, statement: ast.For | ast.AsyncFor | ast.While, start: Callable[[], None]) -> None:
        frame = _Frame((Flow.BREAK, Flow.CONTINUE))
        self._frames.append(frame)
        try:
            start()
            flow = self.block(statement.body)
        except Raised:
            flow = Flow.NEXT
        finally:
            self._frames.pop()
        if flow is Flow.RETURN:
            self._note_exit(flow, {}, statement)

    def _with(self, statement: ast.With | ast.AsyncWith) -> Flow:
        for item in statement.items:
            entered = self._entered(self.value(item.context_expr), item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, entered)
        return self.block(statement.body)

    def _entered(self, manager: Node, at: ast.AST) -> Node:
        """What ``with`` gives a name to: what a class of the script's own returns, else the object itself."""
        own = manager.value.own_class if isinstance(manager.value, Instance) else None
        methods = [own.lookup(name) if own else None for name in ("__enter__", "__exit__")]
        results = [self.call_value(self._bind(each.value, manager, at), Arguments(), at) for each in methods if each]
        return results[0] if methods[0] else manager

    def _try(self, statement: ast.Try) -> Flow:
        line = statement.lineno
        first = len(self.calls)
        why = Open(f"it depends on what fails in line {line}")
        mark = self.heap.mark()

        def body() -> Flow:
            flow = self.block(statement.body)
            return self.block(statement.orelse) if flow is Flow.NEXT else flow

        if not statement.handlers:
            flow = body()
            ended = self.block(statement.finalbody)
            return flow if ended is Flow.NEXT else ended
        changed: Delta = {}

        def followed_body() -> Flow:
            self._tried.append(changed)
            try:
                return body()
            finally:
                self._tried.pop()
                changed.update(self.heap.before(mark))
                self.heap.lose_since(mark)

        last = first
        ways: list[tuple[str, Callable[[], Flow]]] = [("", followed_body)]

        def handling(handler: ast.ExceptHandler) -> Callable[[], Flow]:
            def way() -> Flow:
                nonlocal last
                last = last if last > first else len(self.calls)
                for slots, key, _ in changed.values():
                    self.heap.widen(slots, key, why, self.at(statement))
                if handler.name:
                    self.heap.write(self.scope.slots, handler.name, self.node(Open(NOT_RUN), handler))
                return self.block(handler.body)

            return way

        for handler in statement.handlers:
            ways.append((f"it happens only if line {line} fails", handling(handler)))
        flow = self.fork(ways, why, statement)
        fallbacks = {call.callee for call in self.calls[last:]} if last > first else set()
        for i in range(first, last):
            if self.calls[i].callee in fallbacks and not self.calls[i].doubt:
                self.calls[i] = self.calls[i]._replace(doubt=f"if it fails, line {line} goes on without it")
        ended = self.block(statement.finalbody)
        return flow if ended is Flow.NEXT else ended

    def _define(self, statement: Function) -> None:
        defaults = self._defaults(statement.args)
        function = FunctionValue(statement, self.scope, defaults)
        self.functions.append(function)
        node = self.node(function, statement)
        for decorator in reversed(statement.decorator_list):
            node = self._decorated(function, self.value(decorator), node)
        self.heap.write(self.scope.slots, statement.name, node)

    def _decorated(self, function: FunctionValue, decorator: Node, node: Node) -> Node:
        """Note what a decorator makes of a function: some leave it as it is, of others the result is not known."""
        value = decorator.value
        name = value.name if isinstance(value, Reference) else value.call.callee if isinstance(value, Object) else ""
        last = name.rpartition(".")[2]
        if last in ("staticmethod", "classmethod", "property"):
            function.wrapped += last
        elif last in ("command", "option", "argument"):
            function.command = function.command or name
            if isinstance(value, Object):
                function.options.append(value.call)
        elif last not in _TRANSPARENT:
            function.wrapped += f"?{name}"
        return node

    def _defaults(self, args: ast.arguments) -> dict[str, Node]:
        named = [*args.posonlyargs, *args.args]
        found = {
            each.arg: self.value(value) for each, value in zip(named[len(named) - len(args.defaults) :], args.defaults)
        }
        return found | {each.arg: self.value(value) for each, value in zip(args.kwonlyargs, args.kw_defaults) if value}

    def _class(self, statement: ast.ClassDef) -> None:
        bases = tuple(self.value(base).value for base in statement.bases)
        scope = Scope(self.scope.path, self.scope, is_class=True)
        own = OwnClass(statement, bases, scope)
        decorators = [self.value(each).value for each in statement.decorator_list]
        names = [
            each.name if isinstance(each, Reference) else each.call.callee if isinstance(each, Object) else ""
            for each in decorators
        ]
        own.is_dataclass = any(name.rpartition(".")[2] == "dataclass" for name in names)
        before, self.scope = self.scope, scope
        first = len(self.functions)
        try:
            for inner in statement.body:
                if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    self._field(own, inner)
                else:
                    self.block([inner])
        finally:
            self.scope = before
        for function in self.functions[first:]:
            if function.scope is scope:
                function.owner = own
        self.heap.write(self.scope.slots, statement.name, self.node(own, statement))

    def _field(self, own: OwnClass, statement: ast.AnnAssign) -> None:
        """A field of a dataclass, or an annotated attribute of any other class."""
        name = statement.target.id  # type: ignore[union-attr]
        if statement.value is None:
            own.fields[name] = Field(None, statement.annotation, statement.lineno)
            return
        node = self.value(statement.value)
        default: Callable[[], Node] | None = _always(node)
        if isinstance(node.value, Object) and node.value.call.callee == "dataclasses.field":
            given = node.value.given
            if "default_factory" in given:
                factory = functools.partial(self.call_value, given["default_factory"], Arguments(), statement)
                own.fields[name] = Field(factory, statement.annotation, statement.lineno)
                return
            else:
                default = _always(given["default"]) if "default" in given else None
        own.fields[name] = Field(default, statement.annotation, statement.lineno)
        if default:
            own.slots[name] = default()

    def _import(self, statement: ast.Import) -> None:
        for alias in statement.names:
            self.imports.add(alias.name.partition(".")[0])
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            found = self._importer.module(self, alias.name, 0) if alias.asname or "." not in alias.name else None
            value = Module(found) if found else Reference(name)
            self.heap.write(self.scope.slots, alias.asname or name, self.node(value, statement))

    def _import_from(self, statement: ast.ImportFrom) -> None:
        module = statement.module or ""
        if not statement.level:
            self.imports.add(module.partition(".")[0])
        if module == "__future__":
            return
        found = self._importer.module(self, module, statement.level)
        for alias in statement.names:
            if alias.name == "*":
                if found is None:
                    self.star_import = f"it may come from {module}, which is not read"
                else:
                    for name, node in found.slots.items():
                        if isinstance(name, str) and not name.startswith("_"):
                            self.heap.write(self.scope.slots, name, node)
                continue
            node = found.slots.get(alias.name) if found else None
            if node is None:
                dotted = f"{'.' * statement.level}{module}"
                node = self.node(Reference(f"{dotted}{'' if dotted.endswith('.') else '.'}{alias.name}"), statement)
            self.heap.write(self.scope.slots, alias.asname or alias.name, node)

    def _return(self, statement: ast.Return) -> Flow:
        node = self.value(statement.value) if statement.value else self.node(None, statement)
        for frame in reversed(self._frames):
            if Flow.RETURN in frame.ends:
                frame.returned.append(node)
                break
        return Flow.RETURN

    def _raise(self, statement: ast.Raise) -> Flow:
        if statement.exc:
            self.value(statement.exc)
        raise Raised

    def _global(self, statement: ast.Global | ast.Nonlocal) -> None:
        for name in statement.names:
            around = self.scope.module
            if isinstance(statement, ast.Nonlocal):
                scope = self.scope.around
                while scope is not None and name not in scope.slots:
                    scope = scope.around
                around = scope or around
            self.scope.elsewhere[name] = around

    def _delete(self, statement: ast.Delete) -> None:
        for target in statement.targets:
            if isinstance(target, ast.Name):
                self.heap.write(self._scope_of(target.id).slots, target.id, MISSING)
            elif isinstance(target, ast.Subscript):
                self._remove_item(self.value(target.value).value, self.value(target.slice).value, target)

    def _remove_item(self, owner: object, key: object, at: ast.AST) -> None:
        if isinstance(owner, DictValue) and is_plain(key) and key in owner.slots:
            self.heap.write(owner.slots, key, MISSING)
        elif isinstance(owner, Mutable):
            self.heap.open(owner, Open(NOT_RUN))
        elif isinstance(owner, Open):
            self.change_lost(at)

    def _assert(self, statement: ast.Assert) -> None:
        self.value(statement.test)

    def _match(self, statement: ast.Match) -> Flow:
        self.value(statement.subject)
        line = statement.lineno
        doubt = f"it depends on the condition in line {line}"

        def case(each: ast.match_case) -> Callable[[], Flow]:
            def way() -> Flow:
                for inner in ast.walk(each.pattern):
                    name = getattr(inner, "name", None) or getattr(inner, "rest", None)
                    if isinstance(name, str):
                        self.heap.write(self.scope.slots, name, self.node(Open(NOT_RUN), statement))
                return self.block(each.body)

            return way

        ways: list[tuple[str, Callable[[], Flow | None]]] = [(doubt, case(each)) for each in statement.cases]
        return self.fork([*ways, (doubt, lambda: None)], Open(f"it depends on a condition in line {line}"), statement)

    # -- assignments

    def _scope_of(self, name: str) -> Scope:
        return self.scope.elsewhere.get(name, self.scope)

    def assign(self, target: ast.expr, node: Node) -> None:
        if isinstance(target, ast.Name):
            self.heap.write(self._scope_of(target.id).slots, target.id, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = self.items_of(node)
            fits = items is not None and len(items) == len(target.elts)
            for i, each in enumerate(target.elts):
                if isinstance(each, ast.Starred):
                    fits, each = False, each.value
                whole = items is not None and fits
                self.assign(each, items[i] if whole and items else self.node(Open(NOT_RUN), each))
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.value(target.value), target.attr, node, target)
        elif isinstance(target, ast.Subscript):
            self.set_item(self.value(target.value), self.value(target.slice), node, target)

    def set_attribute(self, owner: Node, name: str, node: Node, at: ast.AST) -> None:
        value = owner.value
        if isinstance(value, Instance) and value.own_class is None and not value.call:
            self.heap.write(value.slots, name, node)
            return
        if isinstance(value, Open):
            self.change_lost(at)
        elif isinstance(value, Mutable):
            self.heap.write(value.slots, name, node)
        elif isinstance(value, Module):
            self.heap.write(value.scope.slots, name, node)
        held: object = value
        if isinstance(value, Part):
            held, name = value.owner, f"{value.path}.{name}"
        if isinstance(held, (Object, Reference, Open)) or (isinstance(held, Instance) and held.own_class):
            self.assignments.append(
                Assignment(self.plain(held), name, self.plain(node.value), self.place(node), self.doubt)
            )

    def change_lost(self, at: ast.AST) -> None:
        """Something unknown is changed: it may be any value that is not followed any more."""
        if self._losing:
            return
        self._losing = True
        for value in list(self.heap.lost.values()):
            if not (isinstance(value, Mutable) and value.is_forgotten):
                self.escape(value, at)
        self._losing = False

    def set_item(self, owner: Node, key: Node, node: Node, at: ast.AST) -> None:
        value = owner.value
        if isinstance(value, Open):
            self.change_lost(at)
        if isinstance(value, DictValue) and is_plain(key.value):
            self.heap.write(value.slots, key.value, node)
        elif (
            isinstance(value, ListValue)
            and isinstance(key.value, int)
            and -len(value.items) <= key.value < len(value.items)
        ):
            items = list(value.items)
            items[key.value] = node
            self.write_items(value, tuple(items))
        elif isinstance(value, (DictValue, ListValue)):
            self.heap.open(value, Open(NOT_RUN))
        elif isinstance(value, Reference) and isinstance(key.value, str):
            self.assignments.append(Assignment(value, key.value, self.plain(node.value), self.place(node), self.doubt))

    # -- expressions

    def value(self, expression: ast.expr) -> Node:
        """The value of an expression; `Open` where it is not given literally."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            self.spend(0)
        found = self._expressions.get(type(expression))
        if found is not None:
            return found(expression)
        for inner in ast.iter_child_nodes(expression):
            if isinstance(inner, ast.expr):
                self.value(inner)
        return self.node(Open(NOT_RUN), expression)

    def node(self, value: object, at: ast.AST, assumed: str = "") -> Node:
        return Node(value, self.scope.path, getattr(at, "lineno", 1), assumed)

    def at(self, at: ast.AST) -> tuple[str, int]:
        return self.scope.path, getattr(at, "lineno", 1)

    def location(self, at: ast.AST) -> Location:
        return Location(*self.at(at))

    def place(self, node: Node) -> Location:
        return Location(node.file, node.line)

    def _constant(self, expression: ast.Constant) -> Node:
        value = expression.value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST_NUMBER:
            return self.node(Open(OUT_OF_PROPORTION), expression)
        return self.node(value if is_plain(value) else Open(NOT_RUN), expression)

    def _name(self, expression: ast.Name) -> Node:
        name = expression.id
        scope: Scope | None = self._scope_of(name)
        while scope is not None:
            found: Node | None = scope.slots.get(name)
            if found is not None and (scope is self.scope or not scope.is_class):
                return found
            scope = scope.around
        if self.star_import and name not in _UNSHADOWED:
            return self.node(Open(f"{name}: {self.star_import}"), expression)
        if name in _BUILTINS:
            return self.node(Reference(f"builtins.{name}"), expression)
        return self.node(Open(f"{name}: no such name is given in the file"), expression)

    def _attribute(self, expression: ast.Attribute) -> Node:
        return self.read_attribute(self.value(expression.value), expression.attr, expression)

    def read_attribute(self, owner: Node, name: str, at: ast.AST) -> Node:
        value = owner.value
        if isinstance(value, Reference):
            special = self._library.get(f"{value.name}.{name}:value")
            return special(self, at) if special else self.node(Reference(f"{value.name}.{name}"), at)
        if isinstance(value, Module):
            found = value.scope.slots.get(name)
            return found if isinstance(found, Node) else self.node(Open(f"{name}: no such name is given there"), at)
        if isinstance(value, (Instance, Super)):
            return self._instance_attribute(value, name, owner, at)
        if isinstance(value, OwnClass):
            found = value.lookup(name)
            if value.is_enum:
                return self.node(Open("it is a member of an enumeration"), at)
            if found is not None:
                return found if not isinstance(found.value, FunctionValue) else self._bind(found.value, owner, at)
            base = value.imported_base()
            return self.node(Reference(f"{base.name}.{name}") if base else Open(NOT_RUN), at)
        if isinstance(value, (Object, Part)):
            return self._object_attribute(value, name, at)
        return self.node(value if isinstance(value, Open) else Open(NOT_RUN), at)

    def _instance_attribute(self, value: Instance | Super, name: str, owner: Node, at: ast.AST) -> Node:
        if isinstance(value, Super):
            found = next((f for b in value.own_class.bases if isinstance(b, OwnClass) and (f := b.lookup(name))), None)
            instance = self.node(value.instance, at)
        else:
            if name in value.slots:
                held: Node = value.slots[name]
                return held
            if name == "__dict__":
                return self.node(self.mapping_of(value), at)
            found = value.own_class.lookup(name) if value.own_class else None
            instance = owner
        if found is not None and isinstance(found.value, FunctionValue):
            bound = self._bind(found.value, instance, at)
            if "property" in found.value.wrapped and isinstance(bound.value, Bound):
                return self.call_value(bound, Arguments(), at)
            return bound
        if isinstance(value, Instance) and value.opened:
            return self.node(value.opened, at)
        if found is not None:
            return found
        if isinstance(value, Instance) and value.own_class and value.own_class.imported_base():
            return self._object_attribute(value, name, at)
        return self.node(Open(f"{name}: {value.lacking}" if isinstance(value, Instance) else NOT_RUN), at)

    def _bind(self, function: FunctionValue, owner: Node, at: ast.AST) -> Node:
        if "staticmethod" in function.wrapped or (
            isinstance(owner.value, OwnClass) and "classmethod" not in function.wrapped
        ):
            return self.node(function, at)
        if isinstance(owner.value, Instance) and "classmethod" in function.wrapped and owner.value.own_class:
            owner = self.node(owner.value.own_class, at)
        return self.node(Bound(function, owner), at)

    def _object_attribute(self, value: Object | Part | Instance, name: str, at: ast.AST) -> Node:
        held = value.slots.get(name)
        if held is not None:
            return held  # type: ignore[no-any-return]
        if value.opened:
            return self.node(value.opened, at)
        if isinstance(value, Object) and name in value.given and value.has_settings:
            return value.given[name]
        owner, path = (value.owner, f"{value.path}.{name}") if isinstance(value, Part) else (value, name)
        made = self.node(Part(owner, path), at)
        value.slots[name] = made
        return made

    def _subscript(self, expression: ast.Subscript) -> Node:
        owner = self.value(expression.value)
        if isinstance(expression.slice, ast.Slice):
            for each in (expression.slice.lower, expression.slice.upper, expression.slice.step):
                if each:
                    self.value(each)
            self.lose_contents(owner.value)
            return self.node(Open(NOT_RUN), expression)
        return self.read_item(owner, self.value(expression.slice), expression)

    def read_item(self, owner: Node, key: Node, at: ast.AST) -> Node:
        value, name = owner.value, key.value
        if isinstance(value, DictValue) and is_plain(name):
            held = value.slots.get(name)
            if held is not None:
                return held  # type: ignore[no-any-return]
        elif (
            isinstance(value, ListValue)
            and isinstance(name, int)
            and not value.opened
            and -len(value.items) <= name < len(value.items)
        ):
            return value.items[name]
        self.lose_contents(value)
        why = value if isinstance(value, Open) else value.opened if isinstance(value, Mutable) else None
        return self.node(why or Open(NOT_RUN), at)

    def lose_contents(self, value: object) -> None:
        """What is taken out of a value is not known: it may be anything in it."""
        if isinstance(value, (ListValue, DictValue, Instance)):
            for held in value.slots.values():
                self.heap.lose(held)

    def _sequence(self, expression: ast.List | ast.Tuple) -> Node:
        items: list[Node] = []
        for each in expression.elts:
            if isinstance(each, ast.Starred):
                inner = self.items_of(self.value(each.value))
                if inner is None:
                    return self.node(Open(NOT_RUN), expression)
                self.spend(len(inner))
                items.extend(inner)
            else:
                items.append(self.value(each))
        return self.node(ListValue(items) if len(items) <= LONGEST else Open(OUT_OF_PROPORTION), expression)

    def _dict(self, expression: ast.Dict) -> Node:
        made = DictValue()
        for key, each in zip(expression.keys, expression.values):
            if key is None:
                self.merge_into(made.slots, self.value(each))
                continue
            name = self.value(key).value
            node = self.value(each)
            if is_plain(name):
                made.slots[name] = node
            else:
                self._forget(made.slots, Open("its keys are computed by code"))
        return self.node(made, expression)

    def _forget(self, slots: Any, why: Open) -> None:
        slots.clear()
        slots[OPENED] = why

    def merge_into(self, slots: Any, other: Node) -> None:
        """Add what another mapping has to a new one."""
        value = self.mapping_of(other.value)
        if isinstance(value, DictValue):
            self.spend(len(value.slots))
            if value.opened:
                self._forget(slots, value.opened)
            slots.update(value.slots)
        else:
            self._forget(slots, value if isinstance(value, Open) else Open(NOT_RUN))

    def mapping_of(self, value: object) -> object:
        """A namespace as the mapping that shares its attributes; anything else as it is."""
        if isinstance(value, Instance) and value.own_class is None:
            made = DictValue(value.slots)
            if value.lacking and OPENED not in value.slots and value.lacking.startswith("?"):
                value.slots[OPENED] = Open(value.lacking[1:])
            return made
        return value

    def _binary(self, expression: ast.BinOp) -> Node:
        return self._combined(expression.op, self.value(expression.left), self.value(expression.right), expression)

    def _combined(self, op: ast.operator, left: Node, right: Node, at: ast.AST) -> Node:
        one, other = left.value, right.value
        assumed = left.assumed or right.assumed
        for each in (one, other):
            if isinstance(each, Open):
                return self.node(each, at)
        if isinstance(op, ast.Add) and isinstance(one, str) and isinstance(other, str):
            fits = len(one) + len(other) <= LONGEST
            return self.node(one + other if fits else Open(OUT_OF_PROPORTION), at, assumed)
        if isinstance(op, ast.Add) and isinstance(one, ListValue) and isinstance(other, ListValue):
            if one.opened or other.opened:
                return self.node(one.opened or other.opened, at)
            self.spend(len(one.items) + len(other.items))
            return self.node(ListValue((*one.items, *other.items)), at)
        if isinstance(op, ast.Mult) and isinstance(one, ListValue) and isinstance(other, int) and not one.opened:
            fits = 0 <= len(one.items) * other <= LONGEST
            self.spend(len(one.items) * other if fits else 0)
            return self.node(ListValue(one.items * other) if fits else Open(OUT_OF_PROPORTION), at)
        if isinstance(op, ast.BitOr) and isinstance(one, DictValue) and isinstance(other, DictValue):
            made = DictValue()
            self.merge_into(made.slots, left)
            self.merge_into(made.slots, right)
            return self.node(made, at)
        if isinstance(op, ast.Div) and isinstance(one, PathText):
            return self.node(join_paths((one, other)), at, assumed)
        return self.node(combine(op, one, other), at, assumed)

    def _unary(self, expression: ast.UnaryOp) -> Node:
        operand = self.value(expression.operand)
        if isinstance(expression.op, ast.Not):
            truth = self.truth(operand)
            return self.node(Open(NOT_RUN) if truth is None else not truth, expression, operand.assumed)
        value = operand.value
        return self.node(
            value if isinstance(value, Open) else apply_sign(expression.op, value), expression, operand.assumed
        )

    def _compare(self, expression: ast.Compare) -> Node:
        nodes = [self.value(expression.left), *map(self.value, expression.comparators)]
        assumed = next((node.assumed for node in nodes if node.assumed), "")
        result: object = True
        for op, left, right in zip(expression.ops, nodes, nodes[1:]):
            result = self._comparison(op, left, right)
            if result is not True:
                break
        return self.node(result, expression, assumed)

    def _comparison(self, op: ast.cmpop, left: Node, right: Node) -> object:
        one, other = left.value, right.value
        if isinstance(op, (ast.Is, ast.IsNot)) and other is None and not is_plain(one):
            known = not isinstance(one, (Open, Part, Object)) or self._is_made(one)
            return isinstance(op, ast.IsNot) if known else Open(NOT_RUN)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self._contains(other, one)
            return Open(NOT_RUN) if found is None else found is isinstance(op, ast.In)
        if isinstance(one, Reference) and one == other and isinstance(op, (ast.Eq, ast.NotEq)):
            return isinstance(op, ast.Eq)
        return compare(op, one, other)

    def _contains(self, holder: object, item: object) -> bool | None:
        if not is_plain(item) or (isinstance(holder, Mutable) and holder.opened):
            return None
        if isinstance(holder, str):
            return item in holder if isinstance(item, str) else None
        if isinstance(holder, DictValue):
            found = holder.slots.get(item)
            return None if found is not None and isinstance(found.value, Unsure) else found is not None
        if isinstance(holder, ListValue) and all(is_plain(each.value) for each in holder.items):
            return any(each.value == item for each in holder.items)
        return None

    def _is_made(self, value: object) -> bool:
        """Whether an object is surely one of the class that was called."""
        return isinstance(value, Object) and value.call.callee.rpartition(".")[2][:1].isupper()

    def truth(self, node: Node) -> bool | None:
        """What a value counts as in a condition; None where that is not known."""
        value = node.value
        if isinstance(value, (ListValue, DictValue)):
            if isinstance(value, DictValue):
                sure = any(not isinstance(node.value, Unsure) for _, node in value.entries())
                return True if sure else False if value.is_whole else None
            return None if value.opened else bool(value.items)
        if isinstance(value, Object):
            return True if self._is_made(value) and value.has_settings else None
        return truth_of(value) if is_plain(value) else None

    def _boolean(self, expression: ast.BoolOp) -> Node:
        stops_at = isinstance(expression.op, ast.Or)
        for i, each in enumerate(expression.values):
            node = self.value(each)
            if i == len(expression.values) - 1:
                return node
            truth = self.truth(node)
            if truth is None:
                self.heap.lose(node)
                doubt = f"it depends on the condition in line {expression.lineno}"
                for rest in expression.values[i + 1 :]:
                    seen = functools.partial(self._seen, rest)
                    self.fork([(doubt, seen), (doubt, lambda: None)], Open(NOT_RUN), expression)
                return self.node(Open(NOT_RUN), expression)
            if truth is stops_at:
                return node
        raise AssertionError

    def _seen(self, expression: ast.expr) -> None:
        """Follow an expression whose value may be lost."""
        self.heap.lose(self.value(expression))

    def _conditional(self, expression: ast.IfExp) -> Node:
        test = self.value(expression.test)
        truth = self.truth(test)
        if truth is not None:
            taken, other = (expression.body, expression.orelse) if truth else (expression.orelse, expression.body)
            if test.assumed:
                self._look_into(lambda: self._seen(other), expression.test, test.assumed)
            return self.value(taken)
        line = expression.lineno
        found: list[Node] = []
        doubt = f"it depends on the condition in line {line}"
        why = Open(f"it depends on a condition in line {line}")

        def see(part: ast.expr) -> None:
            found.append(self.value(part))

        ways = [(doubt, functools.partial(see, part)) for part in (expression.body, expression.orelse)]
        self.fork(ways, why, expression)
        if len(found) == 1 or (found and is_same(found[0].value, found[1].value)):
            return found[0]
        self.heap.lose(tuple(found))
        return self.node(why, expression)

    def _joined(self, expression: ast.JoinedStr) -> Node:
        parts: list[str] = []
        result: object = None
        assumed = ""
        for each in expression.values:
            if isinstance(each, ast.Constant):
                parts.append(str(each.value))
                continue
            node = self.value(each.value if isinstance(each, ast.FormattedValue) else each)
            plain_format = (
                isinstance(each, ast.FormattedValue) and each.format_spec is None and each.conversion in (-1, 115)
            )
            assumed = assumed or node.assumed
            if is_plain(node.value) and plain_format:
                parts.append(str(node.value))
            elif isinstance(node.value, PathText) and plain_format:
                parts.append(node.value.text)
            else:
                result = node.value if isinstance(node.value, Open) else Open(NOT_RUN)
        if result is None:
            result = "".join(parts) if sum(map(len, parts)) <= LONGEST else Open(OUT_OF_PROPORTION)
        return self.node(result, expression, assumed)

    def _lambda(self, expression: ast.Lambda) -> Node:
        return self.node(FunctionValue(expression, self.scope, self._defaults(expression.args)), expression)

    def _named(self, expression: ast.NamedExpr) -> Node:
        node = self.value(expression.value)
        self.assign(expression.target, node)
        return node

    def _comprehension(self, expression: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Node:
        """The items of a list made of a short known one; of any other the calls in it are seen once."""
        before, self.scope = self.scope, Scope(self.scope.path, self.scope)
        try:
            first = expression.generators[0]
            rounds = self.items_of(self.value(first.iter))
            simple = isinstance(expression, (ast.ListComp, ast.DictComp)) and len(expression.generators) == 1
            if rounds is None or not simple or len(rounds) > _MOST_ROUNDS:
                return self._generic_comprehension(expression)
            items: list[Node] = []
            made = DictValue()
            for item in rounds:
                self.assign(first.target, item)
                truths = [self.truth(self.value(test)) for test in first.ifs]
                if None in truths:
                    return self.node(Open(NOT_RUN), expression)
                if False in truths:
                    continue
                if isinstance(expression, ast.DictComp):
                    key, node = self.value(expression.key).value, self.value(expression.value)
                    if not is_plain(key):
                        return self.node(Open(NOT_RUN), expression)
                    made.slots[key] = node
                elif isinstance(expression, ast.ListComp):
                    items.append(self.value(expression.elt))
            return self.node(made if isinstance(expression, ast.DictComp) else ListValue(items), expression)
        finally:
            self.scope = before

    def _generic_comprehension(self, expression: Any) -> Node:
        for i, generator in enumerate(expression.generators):
            if i:
                self.lose_contents(self.value(generator.iter).value)
            self.assign(generator.target, self.node(Open("it is different in each round"), expression))
            for test in generator.ifs:
                self.value(test)
        for part in ("key", "value", "elt"):
            if hasattr(expression, part):
                self.value(getattr(expression, part))
        return self.node(Open(NOT_RUN), expression)

    def items_of(self, node: Node) -> tuple[Node, ...] | None:
        """The items that iterating over a value gives, where they are known."""
        value = node.value
        if isinstance(value, ListValue) and not value.opened:
            return value.items
        if isinstance(value, DictValue) and value.is_whole:
            return tuple(Node(key, node.file, node.line) for key, _ in value.entries())
        return None

    # -- calls

    def _call(self, expression: ast.Call) -> Node:
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
                    gap = gap or f"*{ast.unparse(each.value):.40} is not known"
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
                gap = gap or f"**{ast.unparse(keyword.value):.40} is not known"
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
            return self.node(Open(f"{value.name[9:]}(...) is called, and nothing is run"), at)
        return self.record(value.name, arguments, at)

    def record(self, callee: str, arguments: Arguments, at: ast.AST, owner: object = None) -> Node:
        """Note a call of imported code; its result is an object that nothing more is known of."""
        call = self.made_call(callee, arguments, at, owner)
        self.calls.append(call)
        if not callee.rpartition(".")[2][:1].isupper() and not callee.endswith(".from_pretrained"):
            self._escape_all(arguments, at)
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
        self._escape_all(arguments, at)
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
            self.heap.open(value, Open(f"the code that is called in line {getattr(at, 'lineno', 1)} may change it"))
        elif isinstance(value, (Object, Instance)):
            if not value.opened:
                why = Open(f"the code that is called in line {getattr(at, 'lineno', 1)} may change it")
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
        if self._depth >= _DEEPEST or function in self._active or function.is_quiet:
            return
        names = _parameters(function.node)
        given = {
            name: self.node(Open(f"{name} is given by the code that calls {function.name}"), function.node)
            for name in names
        }
        if owner is not None and names:
            given[names[0]] = owner
        mark, began = self.heap.mark(), self.heap.now()
        with contextlib.suppress(Raised):
            self._enter(function, given, at)
        self.heap.lose_since(mark)
        changed = [each for each in self.heap.undo(mark).values() if each[0].born < began]
        function.is_quiet = not changed
        for slots, key, new in changed:
            self.heap.widen(slots, key, Open(f"{function.name} may change it"), self.at(at), new is MISSING)

    _active: tuple[FunctionValue, ...] = ()

    def _call_function(self, function: FunctionValue, arguments: Arguments, at: ast.AST) -> Node:
        if function.command and not arguments.positional and not arguments.keywords:
            handler = self._library["command"]
            arguments = handler(self, function, at)
        recursive = function in self._active
        if self._depth >= _DEEPEST or recursive or "?" in function.wrapped:
            self._escape_all(arguments, at)
            if not recursive and self._depth < _DEEPEST:
                self._call_back(function, at)
            return self.node(Open(f"{function.name}(...) is called, and nothing is run"), at)
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
        function.called = True
        before, self.scope = self.scope, Scope(function.scope.path, function.scope)
        active, self._active = self._active, (*self._active, function)
        self._depth += 1
        frame = _Frame((Flow.RETURN,))
        self._frames.append(frame)
        try:
            self.scope.slots.update(given)
            names = _parameters(function.node)
            if function.owner and names and names[0] in given:
                self.scope.slots["__class__"] = Node((given[names[0]].value, function.owner), function.scope.path, 1)
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body)
            flow = self.block(function.node.body)
            self._join_exits(frame, (Flow.RETURN,), at)
            return self._result(function.node, frame, flow, at)
        finally:
            self._frames.pop()
            self._depth -= 1
            self.scope, self._active = before, active

    def _result(self, function: Function, frame: _Frame, flow: Flow, at: ast.AST) -> Node:
        if isinstance(function, ast.AsyncFunctionDef) or (self.has_generators and _is_generator(function)):
            return self.node(Open(f"{function.name} makes it step by step"), at)
        ends = list(frame.returned)
        if flow is not Flow.RETURN:
            ends.append(self.node(None, at))
        if all(is_same(ends[0].value, each.value) for each in ends[1:]):
            return ends[0]
        self.heap.lose(tuple(ends))
        return self.node(Open(f"{function.name} returns different values"), at)

    # -- classes

    def _instantiate(self, own: OwnClass, arguments: Arguments, at: ast.AST) -> Node:
        instance = Instance(own)
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
                instance.slots[OPENED] = Open(arguments.gap or "its class takes arguments by their position")
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

    # -- what is handed on

    def plain(self, value: object, depth: int = 40) -> object:
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
            return Open(f"{value.path} of an object is set by the code that makes it")
        if isinstance(value, PathText):
            return value.text
        return Open(NOT_RUN)


def _kind(value: object) -> str:
    """The type of a value by the name that the table of methods has for it."""
    return _KINDS.get(type(value), "other")


def _always(node: Node) -> Callable[[], Node]:
    return lambda: node


def _parameters(function: Function | ast.Lambda) -> list[str]:
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    return [each.arg for each in every]


def _is_generator(function: Function) -> bool:
    """Whether a function yields, itself and not in one that it defines."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    return False
