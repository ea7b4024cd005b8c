"""Follow the statements of a script with the values it gives, and note what it calls; nothing of it is run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compatcheck.files import limits
from compatcheck.files.python_syntax import Function
from compatcheck.project.python_values import NOT_RUN, Open, Reference, is_plain
from compatcheck.project.script_calls._heap import (
    MISSING,
    OPENED,
    Arguments,
    Delta,
    DictValue,
    Field,
    FunctionValue,
    Instance,
    ListValue,
    Module,
    Mutable,
    Node,
    Object,
    OwnClass,
    Scope,
    may_be_absent,
)
from compatcheck.project.script_calls._invocation import Invocation, parameter_names
from compatcheck.project.script_calls._state import Flow, Frame, Raised
from compatcheck.project.script_calls.calls import CommandLine

_HOOKS = frozenset(("forward", "training_step", "configure_optimizers", "compute_loss"))
_TRANSPARENT = frozenset(
    ("no_grad", "inference_mode", "wraps", "lru_cache", "cache", "record", "abstractmethod", "override", "dataclass")
    + ("find_executable_batch_size", "contextmanager", "overload", "on_local_main_process", "on_main_process")
)


class Interpreter(Invocation):
    """Follows one script; `calls` and `assignments` are what it was seen to do."""

    def __init__(self, command: CommandLine | None, library: Mapping[str, Any], importer: Any) -> None:
        super().__init__(command, library, importer)
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

    def run_module(self, tree: ast.Module, scope: Scope, name: str) -> None:
        """Follow a file from top to bottom."""
        before, self.scope = self.scope, scope
        scope.slots["__name__"] = Node(name, scope.path, 1)
        scope.slots["__file__"] = Node(scope.path, scope.path, 1)
        frames, self._frames = self._frames, [*self._frames, Frame((Flow.RETURN, Flow.BREAK, Flow.CONTINUE))]
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
                if function.node not in self.called:
                    self._run_uncalled(function)

    def _run_uncalled(self, function: FunctionValue) -> None:
        names = parameter_names(function.node)
        given = {
            name: self.node(Open(f"{name} is a parameter that the file does not set"), function.node) for name in names
        }
        given |= function.defaults
        owner = function.owner
        if owner is not None and names and "staticmethod" not in function.wrapped:
            instance = Instance(owner, {OPENED: Open("other code sets it")})
            given[names[0]] = self.node(owner if "classmethod" in function.wrapped else instance, function.node)
        mark = self.heap.mark()
        first = len(self.calls)
        seen = {(call.at, call.callee) for call in self.calls}
        frame = Frame(())
        if not self._is_hook(function):
            frame.doubt = f"no code in the file calls {function.name}"
        self._frames.append(frame)
        try:
            self._enter(function, given, function.node)
        except Raised:
            pass
        finally:
            self._frames.pop()
            self.heap.undo(mark)
            self.calls[first:] = [call for call in self.calls[first:] if (call.at, call.callee) not in seen]

    def _is_hook(self, function: FunctionValue) -> bool:
        """Whether the library calls a method, of a class that the file makes an object of."""
        own = function.owner
        return (
            own is not None and function.name in _HOOKS and own.node in self.called and own.imported_base() is not None
        )

    def block(self, statements: Sequence[ast.stmt]) -> Flow:
        for statement in statements:
            self.spend(1)
            run = self._statements.get(type(statement))
            flow = run(statement) if run else None
            if flow is not None and flow is not Flow.NEXT:
                return flow
        return Flow.NEXT

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

    def _if(self, statement: ast.If) -> Flow:
        test = self.value(statement.test)
        truth = self.truth(test)
        line = statement.test.lineno
        if truth is None:
            why = Open(f"the value depends on a condition in line {line}")
            doubt = f"this depends on the condition in line {line}"
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

    def _for(self, statement: ast.For | ast.AsyncFor) -> Flow:
        rounds = self.items_of(self.value(statement.iter))
        if rounds is None or len(rounds) * self._rounds > limits.SCRIPT_ROUNDS:
            each = self.node(
                Open(f"the value is different in each round of the loop in line {statement.lineno}"), statement
            )
            self.heap.lose(rounds)
            return self._loop(statement, lambda: self.assign(statement.target, each))
        frame = Frame((Flow.BREAK, Flow.CONTINUE))
        self._frames.append(frame)
        around, self._rounds = self._rounds, self._rounds * max(1, len(rounds))
        flow = Flow.NEXT
        try:
            for item in rounds:
                self.assign(statement.target, item)
                try:
                    flow = self.block(statement.body)
                except Raised:
                    if not frame.exits:
                        raise
                    flow = Flow.NEXT if any(kind is Flow.CONTINUE for kind, _, _ in frame.exits) else Flow.BREAK
                if flow in (Flow.BREAK, Flow.RETURN) and any(kind is Flow.CONTINUE for kind, _, _ in frame.exits):
                    self._note_exit(flow, {}, statement)
                    flow = Flow.NEXT
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
        why = Open(f"the loop in line {statement.lineno} changes the value")
        began = self.heap.now()
        widened: set[tuple[int, Any]] = set()
        quick, self._quick = self._quick, True
        for last in (False, False, False, True):
            noted = len(self.calls), len(self.assignments), len(self.functions)
            exits, call_backs = self._count_exits(), self._call_backs.copy()
            mark = self.heap.mark()
            self._round(statement, start)
            changed = {where: each for where, each in self.heap.changes(mark).items() if each[0].born < began}
            self._quick = quick
            self.heap.lose_since(mark)
            if last or quick or changed.keys() <= widened:
                break
            self.heap.undo(mark)
            del self.calls[noted[0] :], self.assignments[noted[1] :], self.functions[noted[2] :]
            self._call_backs = call_backs
            for frame, count in exits:
                del frame.exits[count:]
            widened |= changed.keys()
            for slots, key, old in changed.values():
                self.heap.widen(slots, key, why, self.at(statement), may_be_absent(old))
        for slots, key, old in changed.values():
            self.heap.widen(slots, key, why, self.at(statement), may_be_absent(old))
        return self._else(statement, why)

    def _else(self, statement: ast.For | ast.AsyncFor | ast.While, why: Open) -> Flow:
        """The ``else`` of a loop that may have been left."""
        if not statement.orelse:
            return Flow.NEXT
        doubt = f"this happens only if the loop in line {statement.lineno} runs to its end"
        return self.fork([(doubt, lambda: self.block(statement.orelse)), (doubt, lambda: None)], why, statement)

    def _round(self, statement: ast.For | ast.AsyncFor | ast.While, start: Callable[[], None]) -> None:
        frame = Frame((Flow.BREAK, Flow.CONTINUE))
        self._frames.append(frame)
        try:
            start()
            flow = self.block(statement.body)
        except Raised:
            flow = Flow.NEXT
        finally:
            self._join_exits(frame, (Flow.BREAK, Flow.CONTINUE), statement)
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
        before = self._count_exits()
        try:
            flow = self._handled(statement) if statement.handlers else self._tried_block(statement)
        except Raised:
            self.block(statement.finalbody)
            raise
        if not statement.finalbody:
            return flow
        for frame, count in before:
            for _, mark, delta in frame.exits[count:]:
                self.heap.join([{}, {**self.heap.before(mark), **delta}], Open(NOT_RUN), self.at(statement))
        ended = self.block(statement.finalbody)
        return flow if ended is Flow.NEXT else ended

    def _tried_block(self, statement: ast.Try) -> Flow:
        flow = self.block(statement.body)
        return self.block(statement.orelse) if flow is Flow.NEXT else flow

    def _handled(self, statement: ast.Try) -> Flow:
        """Follow a block and its ``except`` clauses, each from what any part of the block may have left."""
        line = statement.lineno
        why = Open(f"the value depends on what fails in line {line}")
        mark, first = self.heap.mark(), len(self.calls)
        changed: Delta = {}
        handled_from: list[int] = []

        def followed() -> Flow:
            self._tried.append(changed)
            try:
                return self._tried_block(statement)
            finally:
                self._tried.pop()
                changed.update(self.heap.changes(mark))
                self.heap.lose_since(mark)

        def handled(handler: ast.ExceptHandler) -> Flow:
            handled_from.append(len(self.calls))
            for slots, key, old in changed.values():
                self.heap.widen(slots, key, why, self.at(statement), may_be_absent(old))
            if handler.name:
                self.heap.write(self.scope.slots, handler.name, self.node(Open(NOT_RUN), handler))
            return self.block(handler.body)

        doubt = f"this happens only if line {line} fails"
        handlers = [(doubt, functools.partial(handled, each)) for each in statement.handlers]
        flow = self.fork([("", followed), *handlers], why, statement)
        last = handled_from[0]
        fallbacks = {call.callee for call in self.calls[last:]}
        for i in range(first, last):
            if self.calls[i].callee in fallbacks and not self.calls[i].doubt:
                self.calls[i] = self.calls[i]._replace(doubt=f"if this fails, line {line} continues without the value")
        return flow

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
                    self.star_import = f"the value may come from {module}, which is not read"
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
        test = self.value(statement.test)
        if test.assumed and self.truth(test) is False:
            self._doubt_defaults(statement.test)

    def _match(self, statement: ast.Match) -> Flow:
        self.value(statement.subject)
        line = statement.lineno
        doubt = f"this depends on the condition in line {line}"

        def case(each: ast.match_case) -> Callable[[], Flow]:
            def way() -> Flow:
                for inner in ast.walk(each.pattern):
                    name = getattr(inner, "name", None) or getattr(inner, "rest", None)
                    if isinstance(name, str):
                        self.heap.write(self.scope.slots, name, self.node(Open(NOT_RUN), statement))
                return self.block(each.body)

            return way

        ways: list[tuple[str, Callable[[], Flow | None]]] = [(doubt, case(each)) for each in statement.cases]
        return self.fork(
            [*ways, (doubt, lambda: None)], Open(f"the value depends on a condition in line {line}"), statement
        )


def _always(node: Node) -> Callable[[], Node]:
    return lambda: node
