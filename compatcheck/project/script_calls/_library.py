"""What the functions of Python return that scripts build settings with.

Each handler takes the interpreter, the arguments, of a method with the object first, and the place of the call.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping
from typing import Any

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.project.python_values import NOT_RUN, OUT_OF_PROPORTION, Open, is_plain
from compatcheck.project.script_calls._heap import (
    OPENED,
    Arguments,
    DictValue,
    Instance,
    ListValue,
    Mutable,
    Node,
    Object,
    Part,
    Partial,
    PathText,
    join_paths,
)
from compatcheck.project.script_calls._interpreter import Interpreter
from compatcheck.project.script_calls._methods import METHODS, Handler, make_dict, reason_of
from compatcheck.project.script_calls._state import Raised
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.training.document import Document, open_document


def _only(arguments: Arguments) -> Node | None:
    """The one argument of a call that has no others."""
    return (
        arguments.positional[0]
        if len(arguments.positional) == 1 and not arguments.keywords and not arguments.gap
        else None
    )


def _list(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    if not arguments.positional and not arguments.keywords and not arguments.gap:
        return ListValue()
    only = _only(arguments)
    items = run.items_of(only) if only else None
    return Open(NOT_RUN) if items is None else ListValue(items)


def _text(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    only = _only(arguments)
    if only is None:
        return Open(NOT_RUN)
    if isinstance(only.value, PathText):
        return only.value.text
    return run.node(str(only.value) if is_plain(only.value) else reason_of(only.value), at, only.assumed)


def _number(kind: Callable[[Any], Any]) -> Handler:
    def convert(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
        only = _only(arguments)
        if only is None or not isinstance(only.value, (str, int, float)):
            return reason_of(only.value) if only else Open(NOT_RUN)
        if isinstance(only.value, str) and len(only.value) > 30:
            return Open(OUT_OF_PROPORTION)
        try:
            made = kind(only.value)
        except (ValueError, OverflowError):
            return Open("the value cannot be computed")
        return run.node(made if abs(made) <= limits.NUMBER else Open(OUT_OF_PROPORTION), at, only.assumed)

    return convert


def _bool(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    only = _only(arguments)
    truth = run.truth(only) if only else None
    return Open(NOT_RUN) if truth is None or only is None else run.node(truth, at, only.assumed)


def _len(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    only = _only(arguments)
    if only is None:
        return Open(NOT_RUN)
    if isinstance(only.value, str):
        return len(only.value)
    items = run.items_of(only)
    return Open(NOT_RUN) if items is None else run.node(len(items), at, only.assumed)


def _range(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    numbers = [each.value for each in arguments.positional]
    if arguments.gap or not 1 <= len(numbers) <= 3 or not all(type(each) is int for each in numbers):
        return Open(NOT_RUN)
    if len(numbers) == 3 and not numbers[2]:
        return Open(NOT_RUN)
    found = range(*numbers)
    if len(found) > limits.VALUE_LENGTH:
        return Open(OUT_OF_PROPORTION)
    run.spend(len(found))
    return ListValue(run.node(each, at) for each in found)


def _extreme(choose: Callable[..., Any]) -> Handler:
    def find(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
        numbers = [each.value for each in arguments.positional]
        plain = all(isinstance(each, (int, float)) for each in numbers)
        return (
            choose(numbers)
            if len(numbers) > 1 and plain and not arguments.keywords and not arguments.gap
            else Open(NOT_RUN)
        )

    return find


def _getattr(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    if len(arguments.positional) < 2 or not isinstance(arguments.positional[1].value, str):
        return Open(NOT_RUN)
    owner, name = arguments.positional[0], arguments.positional[1].value
    found = run.read_attribute(owner, name, at)
    if isinstance(found.value, Open) and len(arguments.positional) > 2 and isinstance(owner.value, Instance):
        complete = owner.value.own_class is None and not owner.value.opened
        return arguments.positional[2] if complete and name not in owner.value.slots else found
    return Open(NOT_RUN) if isinstance(found.value, Part) and len(arguments.positional) > 2 else found


def _setattr(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    if len(arguments.positional) == 3 and isinstance(arguments.positional[1].value, str):
        run.set_attribute(arguments.positional[0], arguments.positional[1].value, arguments.positional[2], at)
    elif arguments.positional:
        run.escape(arguments.positional[0].value, at)
    return None


def _vars(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    only = _only(arguments)
    return DictValue(only.value.slots) if only and isinstance(only.value, Instance) else Open(NOT_RUN)


def _asdict(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    only = _only(arguments)
    return DictValue(dict(only.value.slots)) if only and isinstance(only.value, Instance) else Open(NOT_RUN)


def _copy(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    only = _only(arguments)
    return _copied(run, only, 20) if only else Open(NOT_RUN)


def _copied(run: Interpreter, node: Node, depth: int) -> Node:
    value = node.value
    run.spend(1)
    if isinstance(value, (ListValue, DictValue)) and not depth:
        return Node(Open(OUT_OF_PROPORTION), node.file, node.line)
    if isinstance(value, ListValue):
        made = ListValue(_copied(run, each, depth - 1) for each in value.items)
        if value.opened:
            made.slots[OPENED] = value.opened
        return Node(made, node.file, node.line, node.assumed)
    if isinstance(value, DictValue):
        slots = {key: each if key is OPENED else _copied(run, each, depth - 1) for key, each in value.slots.items()}
        return Node(DictValue(slots), node.file, node.line, node.assumed)
    return Node(Open(NOT_RUN), node.file, node.line) if isinstance(value, Mutable) else node


def _path(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    parts = [each.value for each in arguments.positional]
    return Open(NOT_RUN) if arguments.gap else join_paths(parts or ["."])


def _os_join(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    joined = _path(run, arguments, at)
    return joined.text if isinstance(joined, PathText) else joined


def _of_text(function: Callable[[str], str]) -> Handler:
    def apply(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
        only = _only(arguments)
        value = only.value if only else None
        text = value.text if isinstance(value, PathText) else value
        return function(text) if isinstance(text, str) else reason_of(text)

    return apply


def _environment_variable(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    return Open("the environment sets the value")


def _ends(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    raise Raised


def _partial(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    if not arguments.positional:
        return Open(NOT_RUN)
    return Partial(arguments.positional[0], arguments._replace(positional=arguments.positional[1:]))


def _field(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    return Object(Call("dataclasses.field", run.location(at)), arguments.keywords)


def _replace(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    first = arguments.positional[0].value if arguments.positional else None
    if not isinstance(first, Instance) or first.call or arguments.gap:
        return Open(NOT_RUN)
    return Instance(first.own_class, {**first.slots, **arguments.keywords})


def _file(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    """``open(path)``: the path stands for the open file."""
    first = arguments.positional[0].value if arguments.positional else None
    return PathText(first) if isinstance(first, str) else first if isinstance(first, PathText) else reason_of(first)


def _load(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    first = arguments.positional[0].value if arguments.positional else None
    return load_file(run, first.text) if isinstance(first, PathText) else reason_of(first)


def load_file(run: Interpreter, name: str) -> object:
    """What a YAML or JSON file beside the script says, each value with its place."""
    path = name if os.path.isabs(name) else os.path.join(os.path.dirname(run.scope.path), name)
    path = os.path.normpath(path)
    if not path.endswith((".yaml", ".yml", ".json")) or not os.path.isfile(path):
        return Open(f"the value is read from {name}, which does not exist")
    try:
        document = open_document(path)
    except InputError:
        return Open(f"the value is read from {name}, which cannot be read")
    return _from_document(run, document, document.value, ())


def _from_document(run: Interpreter, document: Document, value: object, keys: tuple[str | int, ...]) -> object:
    run.spend(1)
    if isinstance(value, dict):
        made = DictValue()
        for key, inner in value.items():
            made.slots[key] = _node_of(run, document, inner, (*keys, key))
        return made
    if isinstance(value, list):
        return ListValue(_node_of(run, document, each, (*keys, i)) for i, each in enumerate(value))
    return value if is_plain(value) else Open(NOT_RUN)


def _node_of(run: Interpreter, document: Document, value: object, keys: tuple[str | int, ...]) -> Node:
    place = document.place(keys)
    return Node(_from_document(run, document, value, keys), place.file, place.line or 1)


def _same(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    return arguments.positional[0] if arguments.positional else Open(NOT_RUN)


def _command_group(run: Interpreter, value: Object, arguments: Arguments, at: ast.AST) -> object:
    """``app()`` of typer or click runs the commands that were added to it."""
    commands = [each for each in run.functions if each.command and each.node not in run.called]
    for each in commands:
        run.call_value(run.node(each, at), Arguments(), at)
    return None


def _namespace(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    if arguments.positional or arguments.gap:
        return Open(NOT_RUN)
    return Instance(None, dict(arguments.keywords))


def _open_names(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    """``exec`` and ``globals`` may set any name of the file."""
    why = Open("code generated while the script runs may set it")
    for name, node in list(run.scope.module.slots.items()):
        if isinstance(node, Node) and (is_plain(node.value) or isinstance(node.value, (ListValue, DictValue))):
            run.heap.widen(run.scope.module.slots, name, why, run.at(at))
    return Open(NOT_RUN)


LIBRARY: Mapping[str, Any] = {
    "builtins.dict": make_dict,
    "builtins.list": _list,
    "builtins.tuple": _list,
    "builtins.str": _text,
    "os.fspath": _text,
    "builtins.int": _number(int),
    "builtins.float": _number(float),
    "builtins.abs": _number(abs),
    "builtins.bool": _bool,
    "builtins.len": _len,
    "builtins.range": _range,
    "builtins.max": _extreme(max),
    "builtins.min": _extreme(min),
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _vars,
    "builtins.open": _file,
    "builtins.exit": _ends,
    "builtins.quit": _ends,
    "sys.exit": _ends,
    "os._exit": _ends,
    "builtins.exec": _open_names,
    "builtins.globals": _open_names,
    "argparse.Namespace": _namespace,
    "types.SimpleNamespace": _namespace,
    "os.path.join": _os_join,
    "os.path.basename": _of_text(os.path.basename),
    "os.path.dirname": _of_text(os.path.dirname),
    "os.environ.get": _environment_variable,
    "os.getenv": _environment_variable,
    "pathlib.Path": _path,
    "pathlib.PurePath": _path,
    "functools.partial": _partial,
    "dataclasses.field": _field,
    "dataclasses.asdict": _asdict,
    "dataclasses.replace": _replace,
    "copy.copy": _copy,
    "copy.deepcopy": _copy,
    "json.load": _load,
    "yaml.safe_load": _load,
    "yaml.full_load": _load,
    "yaml.load": _load,
    "deepspeed.add_config_arguments": _same,
    "path.joinpath": _path,
    "path.as_posix": _text,
    "path.resolve": lambda run, arguments, at: Open(NOT_RUN),
    "path.open": _same,
    **METHODS,
    "typer.Typer().": _command_group,
    "typer.Typer().__call__": _command_group,
    "click.group().": _command_group,
}
