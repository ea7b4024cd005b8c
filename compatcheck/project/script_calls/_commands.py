"""The functions of a script that are a command, as fire, typer, click and tyro call them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.project.python_values import NOT_RUN, Open, Reference
from compatcheck.project.script_calls._command_line import (
    REQUIRED,
    Given,
    annotated,
    find_flag,
    flag_name,
    nested_nodes,
    parse_into_classes,
    placed_value,
)
from compatcheck.project.script_calls._heap import (
    Arguments,
    Field,
    FunctionValue,
    ListValue,
    Node,
    Object,
    OwnClass,
    Parser,
)
from compatcheck.project.script_calls._interpreter import Interpreter
from compatcheck.project.script_calls.calls import Call


def _command(run: Interpreter, function: FunctionValue, at: ast.AST) -> Arguments:
    """The arguments with which fire, typer or click call a function."""
    args = function.node.args
    options = {name: call for call in function.options for name in _option_names(call)}
    given: dict[str, Node] = {}
    words = iter(run.command.positional if run.command else ())
    for each in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        name = each.arg
        found = find_flag(run, (name,))
        field = Field(None, _option_type(options.get(name)) or each.annotation, each.lineno)
        default = _parameter_default(run, function.defaults.get(name), options.get(name), each)
        if found is not None:
            given[name] = annotated(run, field, placed_value(run, found.value, found, at), at)
        elif default is not None:
            given[name] = Node(default.value, default.file, default.line, f"--{name}" if run.command is None else "")
        elif (word := next(words, None)) is not None:
            given[name] = annotated(run, field, placed_value(run, word, Given(word, None), at), at)
        else:
            given[name] = run.node(REQUIRED, each)
    return Arguments((), given)


def _option_type(option: Call | None) -> ast.expr | None:
    """The type that click makes of a word: the one that is given, else that of the default."""
    if option is None:
        return None
    given, default = option.keywords.get("type"), option.keywords.get("default")
    name = given.name.rpartition(".")[2] if isinstance(given, Reference) else type(default).__name__
    return ast.Name("str" if default is None and given is None else name, ast.Load())


def _option_names(call: Call) -> Iterator[str]:
    for each in call.positional:
        if isinstance(each, str):
            for part in each.split("/"):
                yield flag_name(part)


def _parameter_default(run: Interpreter, held: Node | None, option: Any, at: ast.AST) -> Node | None:
    if option is not None:
        if option.keywords.get("is_flag") is True:
            return nested_nodes(run, option.keywords.get("default", False), at)
        return nested_nodes(run, option.keywords["default"], at) if "default" in option.keywords else run.node(None, at)
    if held is not None and isinstance(held.value, Object) and held.value.call.callee.startswith("typer."):
        call = held.value.call
        given = call.positional[0] if call.positional else call.keywords.get("default", REQUIRED)
        return None if isinstance(given, Open) else Node(nested_nodes(run, given, at).value, held.file, held.line)
    return held


def _fire(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    """``fire.Fire(main)``, ``typer.run(main)`` and ``tyro.cli(main)``; of a dataclass the object."""
    target = arguments.positional[0] if arguments.positional else None
    if target is None:
        return Open(NOT_RUN)
    if isinstance(target.value, FunctionValue):
        return run.call_value(target, _command(run, target.value, at), at)
    if isinstance(target.value, OwnClass) and target.value.is_dataclass:
        parsed = parse_into_classes(run, Arguments((run.node(Parser((target,)), at),)), at)
        return parsed.items[0] if isinstance(parsed, ListValue) else parsed
    run.escape(target.value, at)
    return Open(NOT_RUN)


COMMANDS: Mapping[str, Any] = {
    "fire.Fire": _fire,
    "typer.run": _fire,
    "tyro.cli": _fire,
    "simple_parsing.parse": _fire,
    "command": _command,
}
