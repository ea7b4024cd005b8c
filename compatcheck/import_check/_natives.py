"""Functions of Python and of packaging whose meaning the simulated run knows."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from packaging.version import InvalidVersion, Version

from compatcheck.import_check import _lazy
from compatcheck.import_check._values import (
    SPEC,
    UNKNOWN,
    Array,
    Function,
    Module,
    Namespace,
    Native,
    Raised,
    Table,
    Value,
    is_constant,
    is_exception,
    truth,
)

SYS_MODULES = object()
Arguments = list[Value]
Keywords = dict[str, Value]


def _find_spec(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    name = arguments[0] if arguments else keywords.get("name")
    if not isinstance(name, str) or name.startswith("."):
        return run.unknown()
    found = run.exists(name)
    return SPEC if found else None if found is False else run.unknown()


def _import_module(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    given = dict(zip(("name", "package"), arguments), **keywords)
    name, package = given.get("name"), given.get("package")
    if isinstance(name, str) and name.startswith("."):
        if not isinstance(package, str):
            return run.unknown()
        level = len(name) - len(name.lstrip("."))
        holder = package.rsplit(".", level - 1)[0] if level > 1 else package
        name = f"{holder}.{name.lstrip('.')}".rstrip(".")
    return run.load(name) if isinstance(name, str) and name else run.unknown()


def _dunder_import(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) == 1 and not keywords and isinstance(arguments[0], str):
        run.load(arguments[0])
        return run.load(arguments[0].partition(".")[0])
    return run.unknown()


def _version(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    from compatcheck.packages.names import normalised

    if not arguments or not isinstance(arguments[0], str):
        return run.unknown()
    name = normalised(arguments[0])
    if name not in run.finder.versions:
        raise Raised(importlib.metadata.PackageNotFoundError, text=f"no package metadata for {arguments[0]}")
    return run.finder.versions[name] or run.unknown()


def _metadata(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    _version(run, arguments, keywords)
    return UNKNOWN


def _packages_distributions(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    return Table({name: Array([owner]) for name, owner in run.finder.top_level().items()})


def _parse(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments or not isinstance(arguments[0], str):
        return UNKNOWN if not arguments or arguments[0] is not UNKNOWN else run.unknown(importing=False)
    try:
        return Version(arguments[0])
    except InvalidVersion:
        return run.unknown(importing=False)


def _hasattr(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) != 2 or not isinstance(arguments[0], Module) or not isinstance(arguments[1], str):
        return UNKNOWN
    doubt = run.doubt
    try:
        run.member(arguments[0], arguments[1], importing=False)
    except Raised as error:
        if is_exception(error.kind, AttributeError) is True:
            return False
        raise
    return True if run.doubt == doubt else UNKNOWN


def _getattr(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) < 2 or not isinstance(arguments[1], str):
        return run.unknown(importing=False)
    if not isinstance(arguments[0], Module):
        return run.unknown(importing=False)
    try:
        return run.member(arguments[0], arguments[1], importing=False)
    except Raised as error:
        if len(arguments) == 3 and is_exception(error.kind, AttributeError) is True:
            return arguments[2]
        raise


def _setattr(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) == 3 and isinstance(arguments[0], Module):
        if isinstance(arguments[1], str):
            arguments[0].names.setdefault(arguments[1], arguments[2] if not run.shaky else UNKNOWN)
        else:
            run.open_up(arguments[0])
    return None


def _globals(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    return Namespace(run.caller.module)


def _vars(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if arguments and not isinstance(arguments[0], Module):
        return UNKNOWN
    return Namespace(arguments[0] if arguments else run.caller.module)


def _dir(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if arguments and isinstance(arguments[0], Module) and arguments[0].lazy is None:
        return Array(list(arguments[0].names), not arguments[0].open and not arguments[0].compiled)
    return UNKNOWN


def _exec(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    run.open_up(run.caller.module)
    return run.unknown()


def _collection(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments:
        return Array([])
    items = run.items(arguments[0])
    return Array(items) if items is not None else UNKNOWN


def _tuple(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    items = run.items(arguments[0]) if arguments else []
    return tuple(items) if items is not None else UNKNOWN


def _frozenset(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    items = run.items(arguments[0]) if arguments else []
    return frozenset(items) if items is not None and all(map(is_constant, items)) else UNKNOWN


def _dict(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments:
        return Table(dict(keywords))
    if isinstance(arguments[0], Table):
        return Table({**arguments[0].items, **keywords}, arguments[0].exact)
    return UNKNOWN


def _any(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    answers = [truth(item) for item in run.items(arguments[0]) or [UNKNOWN]] if arguments else [None]
    return True if True in answers else UNKNOWN if None in answers else False


def _all(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    items = run.items(arguments[0]) if arguments else None
    answers = [truth(item) for item in items] if items is not None else [None]
    return False if False in answers else UNKNOWN if None in answers else True


def _constant_call(function: Callable[..., Any]) -> Native:
    def call(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
        if keywords or not all(map(is_constant, arguments)):
            return UNKNOWN
        try:
            return function(*arguments)
        except (TypeError, ValueError, IndexError):
            return UNKNOWN

    return Native(call)


def _cached(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) == 1 and isinstance(arguments[0], Function):
        arguments[0].memory = {}
        return arguments[0]
    return Native(_cached)


def _same_function(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    return Native(lambda run, arguments, keywords: arguments[0] if arguments else UNKNOWN)


def environ(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments or not isinstance(arguments[0], str) or arguments[0] in os.environ:
        return UNKNOWN
    return arguments[1] if len(arguments) > 1 else keywords.get("default")


def _path(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    return pathlib.PurePath(arguments[0]) if len(arguments) == 1 and isinstance(arguments[0], str) else UNKNOWN


def _import_structure(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    folder = _lazy.structure_argument(arguments[0] if arguments else keywords.get("module_path"))
    prefix = arguments[1] if len(arguments) > 1 else keywords.get("prefix")
    return _lazy.structure_of(folder, prefix if isinstance(prefix, str) else "") if folder else UNKNOWN


def _nothing(run: Any, arguments: Arguments, keywords: Keywords) -> Value:
    return None


def _version_info(run: Any) -> Value:
    parts = [int(part) for part in run.version.split(".")[:3] if part.isdigit()]
    return (*parts, *[0] * (3 - len(parts)), "final", 0)


_METADATA = {"version": Native(_version), "PackageNotFoundError": importlib.metadata.PackageNotFoundError} | {
    "packages_distributions": Native(_packages_distributions),
    "metadata": Native(_metadata),
    "distribution": Native(_metadata),
}
_PACKAGING = {"parse": Native(_parse), "Version": Native(_parse), "InvalidVersion": InvalidVersion}
NATIVES: dict[tuple[str, str], Any] = {
    ("importlib.util", "find_spec"): Native(_find_spec),
    ("importlib", "import_module"): Native(_import_module),
    **{
        (module, name): value
        for module in ("importlib.metadata", "importlib_metadata")
        for name, value in _METADATA.items()
    },
    **{("packaging.version", name): value for name, value in _PACKAGING.items()},
    ("pkg_resources", "parse_version"): Native(_parse),
    ("functools", "lru_cache"): Native(_cached),
    ("functools", "cache"): Native(_cached),
    ("functools", "wraps"): Native(_same_function),
    ("typing", "TYPE_CHECKING"): False,
    ("typing_extensions", "TYPE_CHECKING"): False,
    ("sys", "modules"): SYS_MODULES,
    ("sys", "version_info"): _version_info,
    ("sys", "platform"): sys.platform,
    ("os", "name"): os.name,
    ("os", "getenv"): Native(environ),
    ("os", "environ"): Table({}, False),
    ("os.path", "dirname"): _constant_call(os.path.dirname),
    ("os.path", "join"): _constant_call(os.path.join),
    ("os.path", "abspath"): _constant_call(os.path.abspath),
    ("pathlib", "Path"): Native(_path),
    ("transformers.utils.import_utils", "define_import_structure"): Native(_import_structure),
}
NATIVE_MODULES = {module for module, _ in NATIVES if module.startswith(("importlib.", "os."))}
ENVIRON = NATIVES["os", "environ"]

_EXCEPTIONS = {
    name: kind
    for name, kind in vars(__import__("builtins")).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}
BUILTINS: dict[str, Value] = {
    **_EXCEPTIONS,
    "hasattr": Native(_hasattr),
    "getattr": Native(_getattr),
    "setattr": Native(_setattr),
    "globals": Native(_globals),
    "locals": Native(_globals),
    "vars": Native(_vars),
    "dir": Native(_dir),
    "exec": Native(_exec),
    "__import__": Native(_dunder_import),
    "print": Native(_nothing),
    "list": Native(_collection),
    "set": Native(_collection),
    "sorted": Native(_collection),
    "tuple": Native(_tuple),
    "frozenset": Native(_frozenset),
    "dict": Native(_dict),
    "any": Native(_any),
    "all": Native(_all),
    "len": _constant_call(len),
    "int": _constant_call(int),
    "str": _constant_call(str),
    "bool": _constant_call(bool),
    "range": _constant_call(lambda *bounds: tuple(range(*bounds)) if len(range(*bounds)) < 100 else UNKNOWN),
}
