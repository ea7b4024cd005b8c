"""The values of the expressions of a script, and what its assignments change."""

from __future__ import annotations

import abc
import ast
import builtins
import functools
from collections.abc import Callable, Mapping
from typing import Any

from compatcheck.files import limits
from compatcheck.project.python_values import (
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
from compatcheck.project.script_calls._heap import (
    ITEMS,
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
    Part,
    PathText,
    Scope,
    Super,
    Unsure,
    is_same,
    join_paths,
)
from compatcheck.project.script_calls._state import Flow, Frame, Raised, State
from compatcheck.project.script_calls.calls import Assignment, CommandLine

_BUILTINS = frozenset(dir(builtins))
_UNSHADOWED = frozenset(
    ("dict", "list", "tuple", "str", "len", "range", "getattr", "print", "isinstance", "open", "super")
)


class Expressions(State, abc.ABC):
    """Evaluates expressions; `Open` is the value of what the text does not give."""

    def __init__(self, command: CommandLine | None, library: Mapping[str, Any], importer: Any) -> None:
        super().__init__(command, library, importer)
        self._expressions: dict[type, Callable[[Any], Node]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self.call,
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

    @abc.abstractmethod
    def call(self, expression: ast.Call) -> Node:
        """The value of a call."""

    @abc.abstractmethod
    def call_value(self, function: Node, arguments: Arguments, at: ast.AST) -> Node:
        """Call a callable value."""

    @abc.abstractmethod
    def escape(self, value: object, at: ast.AST) -> None:
        """A value is in the hands of code that is not followed and may have changed."""

    def value(self, expression: ast.expr) -> Node:
        """The value of an expression; `Open` where it is not given literally."""
        self.spend(1)
        found = self._expressions.get(type(expression))
        if found is not None:
            return found(expression)
        for inner in ast.iter_child_nodes(expression):
            if isinstance(inner, ast.expr):
                self.value(inner)
        return self.node(Open(NOT_RUN), expression)

    def _constant(self, expression: ast.Constant) -> Node:
        value = expression.value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > limits.NUMBER:
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
        return self.node(Open(f"{name}: the file defines no such name"), expression)

    def _attribute(self, expression: ast.Attribute) -> Node:
        return self.read_attribute(self.value(expression.value), expression.attr, expression)

    def read_attribute(self, owner: Node, name: str, at: ast.AST) -> Node:
        value = owner.value
        if isinstance(value, Reference):
            special = self._library.get(f"{value.name}.{name}:value")
            return special(self, at) if special else self.node(Reference(f"{value.name}.{name}"), at)
        if isinstance(value, Module):
            found = value.scope.slots.get(name)
            return found if isinstance(found, Node) else self.node(Open(f"{name}: it defines no such name"), at)
        if isinstance(value, (Instance, Super)):
            return self._instance_attribute(value, name, owner, at)
        if isinstance(value, OwnClass):
            found = value.lookup(name)
            if value.is_enum:
                return self.node(Open("the value is a member of an enumeration"), at)
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
                return self.node(DictValue(value.slots), at)
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
        return self.node(ListValue(items) if len(items) <= limits.VALUE_LENGTH else Open(OUT_OF_PROPORTION), expression)

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
                self._forget(made.slots, Open("the keys are computed by code"))
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
            fits = len(one) + len(other) <= limits.VALUE_LENGTH
            return self.node(one + other if fits else Open(OUT_OF_PROPORTION), at, assumed)
        if isinstance(op, ast.Add) and isinstance(one, ListValue) and isinstance(other, ListValue):
            if one.opened or other.opened:
                return self.node(one.opened or other.opened, at)
            self.spend(len(one.items) + len(other.items))
            return self.node(ListValue((*one.items, *other.items)), at)
        if isinstance(op, ast.Mult) and isinstance(one, ListValue) and isinstance(other, int) and not one.opened:
            fits = 0 <= len(one.items) * other <= limits.VALUE_LENGTH
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
                doubt = f"this depends on the condition in line {expression.lineno}"
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
        doubt = f"this depends on the condition in line {line}"
        why = Open(f"the value depends on a condition in line {line}")

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
            result = "".join(parts) if sum(map(len, parts)) <= limits.VALUE_LENGTH else Open(OUT_OF_PROPORTION)
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
            if rounds is None or not simple or len(rounds) > limits.SCRIPT_ROUNDS:
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
            self.assign(
                generator.target, self.node(Open("the value is different in each round of the loop"), expression)
            )
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

    def _look_into(self, way: Callable[[], object], test: ast.expr, assumed: str) -> None:
        """See the calls of code that runs only if a default does not hold, and undo the rest."""
        mark = self.heap.mark()
        frames, self._frames = self._frames, [*self._frames, Frame(tuple(Flow))]
        self._frames[-1].doubt = self.doubt or f"this happens only if {assumed} has another value"
        try:
            self._doubt_defaults(test)
            way()
        except Raised:
            pass
        finally:
            self._frames = frames
            self.heap.undo(mark)

    def _doubt_defaults(self, test: ast.expr) -> None:
        """The defaults in a condition do not hold where it is decided the other way."""
        for inner in ast.walk(test):
            if isinstance(inner, ast.Attribute):
                owner = self.value(inner.value).value
                held = owner.slots.get(inner.attr) if isinstance(owner, Instance) else None
                if held is not None and held.assumed:
                    why = Open(f"{held.assumed} has another value")
                    self.heap.write(owner.slots, inner.attr, Node(why, held.file, held.line))
            elif isinstance(inner, ast.Name) and (assumed := self._name(inner).assumed):
                self.assign(inner, self.node(Open(f"{assumed} has another value"), inner))

    def _defaults(self, args: ast.arguments) -> dict[str, Node]:
        named = [*args.posonlyargs, *args.args]
        found = {
            each.arg: self.value(value) for each, value in zip(named[len(named) - len(args.defaults) :], args.defaults)
        }
        return found | {each.arg: self.value(value) for each, value in zip(args.kwonlyargs, args.kw_defaults) if value}

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

    def write_items(self, target: ListValue, items: tuple[Node, ...]) -> None:
        self.spend(len(items))
        if len(items) > limits.VALUE_LENGTH:
            self.heap.open(target, Open(OUT_OF_PROPORTION))
        else:
            self.heap.write(target.slots, ITEMS, items)
