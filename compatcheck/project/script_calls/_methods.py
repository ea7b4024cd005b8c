"""The methods of texts, mappings and lists, as far as their values are known.

Handlers are those of `_library`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from compatcheck.files import limits
from compatcheck.project.python_values import NOT_RUN, OUT_OF_PROPORTION, Open, is_plain
from compatcheck.project.script_calls._heap import MISSING, OPENED, Arguments, DictValue, ListValue, Node
from compatcheck.project.script_calls._interpreter import Interpreter

Handler = Callable[[Interpreter, Arguments, Any], object]


def reason_of(value: object) -> Open:
    return value if isinstance(value, Open) else Open(NOT_RUN)


def make_dict(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    made = DictValue()
    if len(arguments.positional) > 1:
        return Open(NOT_RUN)
    if arguments.positional:
        if isinstance(arguments.positional[0].value, ListValue):
            return _dict_of_pairs(run, arguments)
        run.merge_into(made.slots, arguments.positional[0])
    if arguments.gap:
        made.slots[OPENED] = Open(arguments.gap)
    made.slots.update(arguments.keywords)
    return made


def _dict_of_pairs(run: Interpreter, arguments: Arguments) -> object:
    made = DictValue()
    pairs = run.items_of(arguments.positional[0])
    if pairs is None or arguments.gap:
        return Open(NOT_RUN)
    for pair in pairs:
        items = run.items_of(pair)
        if items is None or len(items) != 2 or not is_plain(items[0].value):
            return Open(NOT_RUN)
        made.slots[items[0].value] = items[1]
    made.slots.update(arguments.keywords)
    return made


def _method(kind: type, name: str) -> Handler:
    """A method of strings, on short ones."""

    def apply(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
        values = [each.value for each in arguments.positional]
        assumed = next((each.assumed for each in arguments.positional if each.assumed), "")
        if arguments.keywords or arguments.gap or not all(isinstance(each, (str, int)) for each in values):
            return next((each for each in values if isinstance(each, Open)), Open(NOT_RUN))
        if sum(len(str(each)) for each in values) > 1000 or any(type(each) is int and each > 100 for each in values):
            return Open(OUT_OF_PROPORTION)
        try:
            made = getattr(kind, name)(*values)
        except (TypeError, ValueError, IndexError):
            return Open("the value cannot be computed")
        if isinstance(made, list):
            return ListValue(run.node(each, at, assumed) for each in made)
        return run.node(made if is_plain(made) else Open(NOT_RUN), at, assumed)

    return apply


def _str_join(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    items = run.items_of(arguments.positional[1]) if len(arguments.positional) == 2 else None
    between = arguments.positional[0].value
    if items is None or not all(isinstance(each.value, str) for each in items):
        return Open(NOT_RUN)
    run.spend(len(items))
    size = sum(len(each.value) + len(between) for each in items)
    return between.join(each.value for each in items) if size <= limits.VALUE_LENGTH else Open(OUT_OF_PROPORTION)


def _update(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    target = arguments.positional[0].value
    made = make_dict(run, arguments._replace(positional=arguments.positional[1:]), at)
    if not isinstance(made, DictValue) or made.opened:
        run.heap.open(target, made.opened or Open(NOT_RUN) if isinstance(made, DictValue) else reason_of(made))
    if isinstance(made, DictValue):
        for key, node in made.entries():
            run.heap.write(target.slots, key, node)
    return None


def _get(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    target = arguments.positional[0].value
    key, *rest = [*arguments.positional[1:], run.node(Open(NOT_RUN), at)]
    if not is_plain(key.value):
        return Open(NOT_RUN)
    found = target.slots.get(key.value)
    if found is not None:
        return found
    return target.opened or (rest[0] if len(rest) > 1 else None)


def _key(arguments: Arguments) -> object:
    """The key that a method of a mapping is given; `Open` for none."""
    return arguments.positional[1].value if len(arguments.positional) > 1 else Open(NOT_RUN)


def _pop(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    found = _get(run, arguments, at)
    target, key = arguments.positional[0].value, _key(arguments)
    if is_plain(key):
        run.heap.write(target.slots, key, MISSING)
    else:
        run.heap.open(target, Open(NOT_RUN))
    return found


def _setdefault(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    target, key = arguments.positional[0].value, _key(arguments)
    found = _get(run, arguments, at)
    if not is_plain(key) or target.opened:
        run.heap.open(target, target.opened or Open(NOT_RUN))
    elif key not in target.slots and len(arguments.positional) == 3:
        run.heap.write(target.slots, key, arguments.positional[2])
    return found


def _entries(arguments: Arguments) -> list[tuple[Any, Node]] | Open:
    """The keys and values of a mapping; `Open` where a key may be missing."""
    value = arguments.positional[0].value
    return value.entries() if value.is_whole else value.opened or Open("the mapping may have other keys")


def _items(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    entries = _entries(arguments)
    if isinstance(entries, Open):
        return entries
    return ListValue(run.node(ListValue((run.node(key, at), each)), at) for key, each in entries)


def _keys(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    entries = _entries(arguments)
    return entries if isinstance(entries, Open) else ListValue(run.node(key, at) for key, _ in entries)


def _values(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    entries = _entries(arguments)
    return entries if isinstance(entries, Open) else ListValue(each for _, each in entries)


def _shallow(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    value = arguments.positional[0].value
    made = ListValue() if isinstance(value, ListValue) else DictValue()
    made.slots.update(value.slots)
    return made


def _append(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    target = arguments.positional[0].value
    if len(arguments.positional) == 2 and not target.opened:
        run.write_items(target, (*target.items, arguments.positional[1]))
    else:
        run.heap.open(target, target.opened or Open(NOT_RUN))
    return None


def _extend(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    target = arguments.positional[0].value
    items = run.items_of(arguments.positional[1]) if len(arguments.positional) == 2 else None
    if items is None or target.opened:
        run.heap.open(target, Open(NOT_RUN))
    else:
        run.write_items(target, (*target.items, *items))
    return None


def _clear(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    target = arguments.positional[0].value
    run.heap.open(target, Open(NOT_RUN))
    run.heap.write(target.slots, OPENED, MISSING)
    return None


_OF_TEXT = (
    *(
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "split",
        "rsplit",
        "startswith",
        "endswith",
        "title",
        "capitalize",
    ),
    *("removeprefix", "removesuffix", "find", "count", "isdigit", "partition"),
)
METHODS: Mapping[str, Handler] = {
    **{f"str.{name}": _method(str, name) for name in _OF_TEXT},
    "str.join": _str_join,
    "dict.update": _update,
    "dict.get": _get,
    "dict.pop": _pop,
    "dict.setdefault": _setdefault,
    "dict.items": _items,
    "dict.keys": _keys,
    "dict.values": _values,
    "dict.copy": _shallow,
    "list.copy": _shallow,
    "dict.clear": _clear,
    "list.clear": _clear,
    "list.append": _append,
    "list.extend": _extend,
}
