"""Methods of texts, lists, dictionaries and namespaces in the simulated run."""

from __future__ import annotations

from compatcheck.import_check._modules import Modules
from compatcheck.import_check._natives import ENVIRON, SYS_MODULES, Arguments, Keywords, environ
from compatcheck.import_check._values import UNKNOWN, Array, Namespace, Table, Value, is_constant, items

_TEXT_METHODS = (
    "lower", "upper", "strip", "lstrip", "rstrip", "split", "rsplit", "startswith", "endswith", "replace", "join",
    "format", "partition", "rpartition", "removeprefix", "removesuffix", "title", "count", "find", "isdigit",
)  # fmt: skip


def call_method(modules: Modules, value: Value, name: str, arguments: Arguments, keywords: Keywords) -> Value:
    """A method call on a text, list, dictionary, module namespace or ``sys.modules``."""
    if value is ENVIRON:
        return environ(modules, arguments, keywords) if name == "get" else UNKNOWN
    if isinstance(value, str):
        return _text_method(modules, value, name, arguments, keywords)
    if isinstance(value, Namespace):
        return _namespace_method(modules, value, name, arguments)
    if value is SYS_MODULES:
        key = arguments[0] if name == "get" and arguments else None
        return modules.loaded.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
    if isinstance(value, (Array, Table)):
        shaky = bool(modules.state.shaky or modules.state.caller.unsure)
        whole = (
            _change_array(value, name, arguments)
            if isinstance(value, Array)
            else _change_table(value, name, arguments, keywords)
        )
        if whole is not None:
            value.exact = value.exact and whole and not shaky
            return value.items.get(arguments[0]) if isinstance(value, Table) and name == "setdefault" else None
        return _read(value, name, arguments)
    return modules.leak([*arguments, *keywords.values()])


def _change_array(value: Array, name: str, arguments: Arguments) -> bool | None:
    """Change a list or set; whether it is still known whole, or None for a method that changes nothing."""
    first = arguments[0] if arguments else None
    if name in ("append", "add"):
        value.items.append(first)
        return True
    if name in ("extend", "update"):
        added = items(first)
        value.items += added or []
        return added is not None
    return False if name in ("remove", "discard", "pop", "clear", "insert", "sort", "reverse") else None


def _change_table(value: Table, name: str, arguments: Arguments, keywords: Keywords) -> bool | None:
    """Change a dictionary; whether it is still known whole, or None for a method that changes nothing."""
    first = arguments[0] if arguments else None
    if name == "update":
        known = isinstance(first, Table) and first.exact or not arguments
        value.items.update(first.items if isinstance(first, Table) else {})
        value.items.update(keywords)
        return bool(known)
    if name == "setdefault" and is_constant(first):
        value.items.setdefault(first, arguments[1] if len(arguments) > 1 else None)
        return True
    return False if name in ("pop", "clear", "popitem", "setdefault") else None


def _read(value: Array | Table, name: str, arguments: Arguments) -> Value:
    if isinstance(value, Table):
        if name == "get" and arguments and is_constant(arguments[0]):
            default = arguments[1] if len(arguments) > 1 else None
            return value.items.get(arguments[0], default if value.exact else UNKNOWN)
        if name == "items":
            return Array([(key, item) for key, item in value.items.items()], value.exact)
        if name in ("keys", "values"):
            return Array(list(value.items if name == "keys" else value.items.values()), value.exact)
    if name == "copy":
        return Table({**value.items}, value.exact) if isinstance(value, Table) else Array([*value.items], value.exact)
    if name == "union" and isinstance(value, Array):
        parts = [items(argument) for argument in arguments]
        merged = [item for part in parts for item in part or []]
        return Array([*value.items, *merged], value.exact and None not in parts)
    return UNKNOWN


def _text_method(modules: Modules, value: str, name: str, arguments: Arguments, keywords: Keywords) -> Value:
    plain = [list(a.items) if isinstance(a, Array) and a.exact else a for a in arguments]
    known = all(is_constant(a) or (isinstance(a, list) and all(map(is_constant, a))) for a in plain)
    if name not in _TEXT_METHODS or not known or keywords:
        return UNKNOWN
    try:
        result = getattr(value, name)(*plain)
    except (TypeError, ValueError, IndexError, KeyError):
        return UNKNOWN
    return Array(result) if isinstance(result, list) else result


def _namespace_method(modules: Modules, value: Namespace, name: str, arguments: Arguments) -> Value:
    names = value.module.names
    if name == "update" and arguments:
        if isinstance(arguments[0], Table):
            names.update({key: item for key, item in arguments[0].items.items() if isinstance(key, str)})
        if not isinstance(arguments[0], Table) or not arguments[0].exact:
            modules.open_up(value.module)
        return None
    if name == "get" and arguments and isinstance(arguments[0], str):
        return names.get(arguments[0], UNKNOWN)
    if name in ("setdefault", "__setitem__", "pop"):
        modules.open_up(value.module)
    if name in ("items", "keys", "values", "copy"):
        return UNKNOWN
    return modules.unknown()
