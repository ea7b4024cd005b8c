"""What the parsers of a script give it: the values of its launch line, and the script's own defaults for the rest."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from compatcheck.environment import Location
from compatcheck.project.python_values import NOT_RUN, Open, Reference, is_plain
from compatcheck.project.script_calls._heap import (
    OPENED,
    Arguments,
    DictValue,
    Field,
    Instance,
    ListValue,
    Node,
    OwnClass,
    Parser,
    PathText,
)
from compatcheck.project.script_calls._interpreter import Interpreter
from compatcheck.project.script_calls._library import load_file

REQUIRED = Open("the value is set on the command line")
_FROM_COMMAND_LINE = "the arguments come from the command line"


class Option(NamedTuple):
    """An argument that an ``argparse`` parser takes: its names, and the keywords it was added with."""

    names: tuple[str, ...]
    keywords: Mapping[str, Node]
    at: Node


class Given(NamedTuple):
    """What a command line says for one option."""

    value: object
    place: Location | None


def flag_name(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def find_flag(run: Interpreter, names: tuple[str, ...]) -> Given | None:
    """What the launch line gives under one of these names."""
    command = run.command
    if command is None:
        return None
    wanted = {flag_name(name) for name in names}
    for name, value in command.flags.items():
        if flag_name(name) in wanted:
            return Given(value, command.places.get(name))
    return None


def placed_value(run: Interpreter, value: object, given: Given, at: ast.AST) -> Node:
    """A value of the command line, at its place there."""
    node = nested_nodes(run, value, at)
    if given.place:
        node.file, node.line = given.place.file, given.place.line or 1
    return node


def nested_nodes(run: Interpreter, value: object, at: ast.AST) -> Node:
    if isinstance(value, (list, tuple)):
        return run.node(ListValue(nested_nodes(run, each, at) for each in value), at)
    if isinstance(value, dict):
        return run.node(DictValue({key: nested_nodes(run, each, at) for key, each in value.items()}), at)
    return run.node(value if is_plain(value) or isinstance(value, (Open, Reference)) else Open(NOT_RUN), at)


# -- argparse


def _parser(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    return Parser()


def _add_argument(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    parser = arguments.positional[0].value
    names = tuple(each.value for each in arguments.positional[1:])
    named = [name for name in names if isinstance(name, str)]
    if len(named) < len(names) or not named or arguments.gap:
        run.heap.open(parser, Open("the parser has arguments whose names are computed by code"))
        return None
    given = arguments.keywords.get("dest")
    long = next((name for name in named if name.startswith("--")), named[0])
    dest = given.value if given else flag_name(long)
    if isinstance(dest, str):
        run.heap.write(
            parser.slots, dest, Node(Option(tuple(named), arguments.keywords, run.node(None, at)), *run.at(at))
        )
    return None


def _set_defaults(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    parser = arguments.positional[0].value
    for name, node in arguments.keywords.items():
        held = parser.slots.get(name)
        option = held.value if held else Option((), {}, node)
        changed = option._replace(keywords={**option.keywords, "default": node})
        run.heap.write(parser.slots, name, Node(changed, node.file, node.line))
    if arguments.gap:
        run.heap.open(parser, Open(arguments.gap))
    return None


def _same_parser(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    return arguments.positional[0]


def _parse_args(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    parser = arguments.positional[0].value
    if parser.classes:
        return parse_into_classes(run, arguments, at)
    lacking = parser.opened.why if parser.opened else "the file adds no argument of this name"
    namespace = Instance(None, lacking=lacking)
    given = [*arguments.positional[1:], *arguments.keywords.values()]
    words_given = run.items_of(given[0]) if len(given) == 1 and "namespace" not in arguments.keywords else None
    explicit = bool(given) and words_given != ()
    words = iter(run.command.positional if run.command else ())
    position = 0
    for name, node in parser.slots.items():
        if name is OPENED:
            namespace.slots[OPENED] = node
            continue
        option: Option = node.value
        if words_given == () and option.names and option.names[0].startswith("-"):
            namespace.slots[name] = _default(run, name, option, option_node(option), certain=True)
        elif explicit:
            namespace.slots[name] = run.node(Open("the script sets its own arguments"), option_node(option))
        elif option.names and not option.names[0].startswith("-"):
            namespace.slots[name] = _word(run, option, words, position)
            position += 1
        else:
            namespace.slots[name] = _option_value(run, name, option)
    return namespace


def _parse_known_args(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    parsed = run.node(_parse_args(run, arguments, at), at)
    return ListValue((parsed, run.node(Open("the value holds the remaining arguments of the command line"), at)))


def option_node(option: Option) -> ast.AST:
    return ast.Pass(lineno=option.at.line, col_offset=0)


def _word(run: Interpreter, option: Option, words: Iterator[object], position: int) -> Node:
    """The value of an argument without a flag."""
    at = option_node(option)
    many = option.keywords.get("nargs")
    if many is not None:
        return run.node(REQUIRED, at)
    given = next(words, None)
    if given is None:
        return run.node(REQUIRED, at)
    place = run.command.places.get(position) if run.command else None
    return _converted(run, option, Given(given, place), at)


def _action(option: Option) -> str:
    """The name of an option's action; empty where it is computed."""
    action = option.keywords.get("action")
    value = action.value if action else "store"
    return value.name if isinstance(value, Reference) else value if isinstance(value, str) else ""


def _option_value(run: Interpreter, dest: str, option: Option) -> Node:
    at = option_node(option)
    kind = _action(option)
    given = find_flag(run, (dest, *option.names))
    negated = find_flag(run, tuple(f"no_{flag_name(name)}" for name in option.names))
    if given is None and not (negated and "BooleanOptionalAction" in kind):
        return _default(run, dest, option, at)
    if given is None:
        return placed_value(run, False, negated, at)  # type: ignore[arg-type]
    if kind == "store_true" or kind == "store_false":
        return placed_value(run, kind == "store_true", given, at)
    if "BooleanOptionalAction" in kind:
        return placed_value(run, given.value is not False, given, at)
    if kind == "store_const":
        const = option.keywords.get("const")
        return placed_value(run, const.value if const else None, given, at)
    if kind != "store":
        return run.node(REQUIRED, at)
    return _converted(run, option, given, at)


def _default(run: Interpreter, dest: str, option: Option, at: ast.AST, certain: bool = False) -> Node:
    flag = next((name for name in option.names if name.startswith("--")), option.names[0] if option.names else dest)
    assumed = flag if run.command is None and not certain else ""
    required = option.keywords.get("required")
    if required is not None and run.truth(required) is not False:
        return run.node(REQUIRED, at)
    default = option.keywords.get("default")
    if default is None:
        value = {"store_true": False, "store_false": True}.get(_action(option))
        return run.node(value, at, assumed)
    if isinstance(default.value, str) and "type" in option.keywords:
        default = _typed(run, option, default, at)
    return Node(default.value, default.file, default.line, assumed)


def _converted(run: Interpreter, option: Option, given: Given, at: ast.AST) -> Node:
    value = given.value
    if value is True and "const" in option.keywords:
        return placed_value(run, option.keywords["const"].value, given, at)
    many = option.keywords.get("nargs")
    if many is not None and many.value != "?":
        words = value if isinstance(value, (list, tuple)) else [value]
        parts = [_typed(run, option, placed_value(run, each, given, at), at) for each in words]
        return _placed(run.node(ListValue(parts), at), given)
    return _placed(_typed(run, option, placed_value(run, value, given, at), at), given)


def _placed(node: Node, given: Given) -> Node:
    if given.place is None:
        return node
    return Node(node.value, given.place.file, given.place.line or 1)


def _typed(run: Interpreter, option: Option, node: Node, at: ast.AST) -> Node:
    """A word of the command line as the ``type`` of its option makes it."""
    kind = option.keywords.get("type")
    if kind is None or kind.value == Reference("builtins.str"):
        return run.node(_word_of(node.value), at)
    if kind.value == Reference("builtins.bool"):
        known = is_plain(node.value) and node.value is not None
        return run.node(node.value != "" if known else Open(NOT_RUN), at)
    word = node.value if kind.value in _NUMBERS and is_plain(node.value) else _word_of(node.value)
    return run.call_value(kind, Arguments((run.node(word, at),)), at)


_NUMBERS = (Reference("builtins.int"), Reference("builtins.float"))


def _word_of(value: object) -> object:
    """The text of a word that may have been taken for a number already."""
    if isinstance(value, float):
        return Open(f"{value} may be overridden on the command line")
    return str(value) if isinstance(value, (int, bool)) else value


# -- parsers of dataclasses


def _class_parser(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    first = arguments.positional[0] if arguments.positional else arguments.keywords.get("dataclass_types")
    if first is None:
        return Open(NOT_RUN)
    classes = run.items_of(first)
    return Parser(classes if classes is not None else (first,))


def parse_into_classes(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    """``parse_args_into_dataclasses`` and ``parse_args_and_config``."""
    parser = arguments.positional[0].value
    if not parser.classes:
        return Open(NOT_RUN)
    if len(arguments.positional) > 1 or "args" in arguments.keywords:
        return _filled(run, parser, None, at, "the script sets its own arguments")
    given: dict[str, Node] = {}
    gap = "" if run.command else _FROM_COMMAND_LINE
    if run.command:
        config = find_flag(run, ("config",))
        if config and isinstance(config.value, str):
            said = load_file(run, config.value)
            if isinstance(said, DictValue):
                given |= {flag_name(key): node for key, node in said.entries() if isinstance(key, str)}
            else:
                gap = f"the arguments come from {config.value}, which is not read"
        for name, value in run.command.flags.items():
            given[flag_name(name)] = placed_value(run, value, Given(value, run.command.places.get(name)), at)
    filled = _filled(run, parser, given, at, gap)
    rest = arguments.keywords.get("return_remaining_strings")
    if rest is not None and rest.value is not False and isinstance(filled, ListValue):
        return ListValue(
            (*filled.items, run.node(Open("the value holds the remaining arguments of the command line"), at))
        )
    return filled


def _parse_file(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    parser = arguments.positional[0].value
    named = [
        *arguments.positional[1:],
        *(arguments.keywords[key] for key in _FILE_KEYWORDS if key in arguments.keywords),
    ]
    path = named[0].value if named else None
    text = path.text if isinstance(path, PathText) else path
    said = load_file(run, text) if isinstance(text, str) else Open("the arguments come from an unknown file")
    if isinstance(said, Open) and run.command and text in run.command.positional and run.command.flags:
        flags = {flag_name(name): (name, value) for name, value in run.command.flags.items()}
        given = {
            flag: placed_value(run, value, Given(value, run.command.places.get(name)), at)
            for flag, (name, value) in flags.items()
        }
        said = DictValue(given)
    return _from_mapping(run, parser, said, at)


_FILE_KEYWORDS = ("json_file", "yaml_file")


def _parse_dict(run: Interpreter, arguments: Arguments, at: ast.AST) -> object:
    given = [*arguments.positional[1:], *(arguments.keywords[key] for key in ("args",) if key in arguments.keywords)]
    said = run.mapping_of(given[0].value) if given else Open(NOT_RUN)
    return _from_mapping(run, arguments.positional[0].value, said, at)


def _from_mapping(run: Interpreter, parser: Parser, said: object, at: ast.AST) -> object:
    if not isinstance(said, DictValue):
        why = said.why if isinstance(said, Open) else NOT_RUN
        return _filled(run, parser, None, at, why)
    entries = {key: node for key, node in said.entries() if isinstance(key, str)}
    return _filled(run, parser, entries, at, said.opened.why if said.opened else "", assumed=False)


def _filled(
    run: Interpreter, parser: Parser, given: Mapping[str, Node] | None, at: ast.AST, gap: str, assumed: bool = True
) -> object:
    """One object of each class, with what is given; the fields of the script's own classes have their defaults."""
    made: list[Node] = []
    own_names = {
        name for each in parser.classes if isinstance(each.value, OwnClass) for name in each.value.all_fields()
    }
    for each in parser.classes:
        value = each.value
        if isinstance(value, OwnClass):
            base = value.imported_base()
            made.append(_own_filled(run, value, given, at, gap, assumed and run.command is None, own_names, bool(base)))
        elif isinstance(value, Reference):
            rest = {name: node for name, node in (given or {}).items() if name not in own_names}
            made.append(run.record(value.name, Arguments((), rest, gap), at))
        else:
            made.append(run.node(Open(NOT_RUN), at))
    return ListValue(made)


def _own_filled(
    run: Interpreter,
    own: OwnClass,
    given: Mapping[str, Node] | None,
    at: ast.AST,
    gap: str,
    assumed: bool,
    own_names: set[str],
    library: bool,
) -> Node:
    keywords: dict[str, Node] = {}
    lines = run.command is None and gap == _FROM_COMMAND_LINE
    for name, field in own.all_fields().items():
        if given is not None and name in given:
            keywords[name] = annotated(run, field, given[name], at)
        elif gap and not lines:
            keywords[name] = run.node(Open(gap), at)
        elif field.default is None:
            keywords[name] = run.node(REQUIRED, at)
        else:
            held = field.default()
            keywords[name] = Node(held.value, held.file, held.line, f"--{name}" if assumed else "")
    if library:
        rest = {name: node for name, node in (given or {}).items() if name not in own_names}
        return run.call_value(run.node(own, at), Arguments((), {**rest, **keywords}, gap), at)
    instance = Instance(own, dict(keywords))
    run.after_init(instance, own, at)
    return run.node(instance, at)


def annotated(run: Interpreter, field: Field, node: Node, at: ast.AST) -> Node:
    """A word as the annotation of its field makes it."""
    value = node.value
    if field.annotation is None:
        return node
    text = ast.unparse(field.annotation).replace("'", "").replace('"', "")
    words = set(text.replace("[", " ").replace("]", " ").replace("|", " ").replace(",", " ").split())
    made: Any = value
    try:
        if isinstance(value, str) and "bool" in words and value.lower() in _TRUTHS:
            made = _TRUTHS[value.lower()]
        elif isinstance(value, str) and "int" in words and "str" not in words:
            made = int(value)
        elif (
            isinstance(value, str)
            and "float" in words
            and "str" not in words
            or type(value) is int
            and "float" in words
            and "int" not in words
        ):
            made = float(value)
        elif is_plain(value) and not isinstance(value, str) and words <= {"str", "Optional", "None"}:
            made = _word_of(value)
        elif is_plain(value) and words & {"list", "List"}:
            made = ListValue((node,))
    except ValueError:
        made = Open("the value is not a number")
    return Node(made, node.file, node.line)


_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _argv(run: Interpreter, at: ast.AST) -> Node:
    """``sys.argv`` of a script that is started with the launch line, or with no arguments."""
    command = run.command
    if command is None:
        return Node(ListValue((run.node("script.py", at),)), *run.at(at), "the command line")
    words = [run.node("script.py", at), *(run.node(each, at) for each in command.positional)]
    for name in command.flags:
        words += [run.node(Open(f"--{name}"), at), run.node(Open(NOT_RUN), at)]
    return run.node(ListValue(words), at)


PARSERS: Mapping[str, Any] = {
    "argparse.ArgumentParser": _parser,
    "parser.add_argument": _add_argument,
    "parser.set_defaults": _set_defaults,
    "parser.parse_args": _parse_args,
    "parser.parse_known_args": _parse_known_args,
    "parser.add_argument_group": _same_parser,
    "parser.add_mutually_exclusive_group": _same_parser,
    "parser.add_subparsers": _same_parser,
    "parser.add_parser": _same_parser,
    **{f"{where}HfArgumentParser": _class_parser for where in ("transformers.", "transformers.hf_argparser.")},
    **{f"{where}TrlParser": _class_parser for where in ("trl.", "trl.commands.cli_utils.", "trl.scripts.utils.")},
    "parser.parse_args_into_dataclasses": parse_into_classes,
    "parser.parse_args_and_config": parse_into_classes,
    "parser.parse_json_file": _parse_file,
    "parser.parse_yaml_file": _parse_file,
    "parser.parse_dict": _parse_dict,
    "sys.argv:value": _argv,
}
