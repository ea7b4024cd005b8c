"""Functions of Python and of packaging whose meaning is known; each is called with the modules of the run."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from packaging.version import InvalidVersion, Version

from compatcheck.import_check import _lazy
from compatcheck.import_check._modules import Modules
from compatcheck.import_check._values import (
    SPEC,
    UNKNOWN,
    Array,
    Function,
    Known,
    Module,
    Namespace,
    Raised,
    Table,
    Value,
    is_constant,
    is_exception,
    items,
    truth,
)

SYS_MODULES = object()
Arguments = list[Value]
Keywords = dict[str, Value]


class Native(Known):
    """A function whose meaning is known; ``call`` gets the modules of the run, the arguments and the keywords."""

    def __init__(self, call: Callable[[Modules, Arguments, Keywords], Value]) -> None:
        self.call = call


def _find_spec(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    name = arguments[0] if arguments else keywords.get("name")
    if not isinstance(name, str) or name.startswith("."):
        return modules.state.unknown()
    found = modules.exists(name)
    return SPEC if found else None if found is False else modules.state.unknown()


def _import_module(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    given = dict(zip(("name", "package"), arguments), **keywords)
    name, package = given.get("name"), given.get("package")
    if isinstance(name, str) and name.startswith("."):
        if not isinstance(package, str):
            return modules.state.unknown()
        level = len(name) - len(name.lstrip("."))
        holder = package.rsplit(".", level - 1)[0] if level > 1 else package
        name = f"{holder}.{name.lstrip('.')}".rstrip(".")
    return modules.load(name) if isinstance(name, str) and name else modules.state.unknown()


def _dunder_import(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) == 1 and not keywords and isinstance(arguments[0], str):
        modules.load(arguments[0])
        return modules.load(arguments[0].partition(".")[0])
    return modules.state.unknown()


def _version(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    from compatcheck.packages.names import normalised

    if not arguments or not isinstance(arguments[0], str):
        return modules.state.unknown()
    name = normalised(arguments[0])
    if name not in modules.finder.versions:
        raise Raised(importlib.metadata.PackageNotFoundError, text=f"no package metadata for {arguments[0]}")
    return modules.finder.versions[name] or modules.state.unknown()


def _metadata(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    _version(modules, arguments, keywords)
    return UNKNOWN


def _packages_distributions(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    return Table({name: Array([owner]) for name, owner in modules.finder.top_level().items()})


def _parse(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments or not isinstance(arguments[0], str):
        return UNKNOWN if not arguments or arguments[0] is not UNKNOWN else modules.state.unknown(importing=False)
    try:
        return Version(arguments[0])
    except ValueError:
        return modules.state.unknown(importing=False)


def _hasattr(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) != 2 or not isinstance(arguments[0], Module) or not isinstance(arguments[1], str):
        return UNKNOWN
    doubt = modules.state.doubt
    try:
        modules.member(arguments[0], arguments[1], importing=False)
    except Raised as error:
        if is_exception(error.kind, AttributeError) is True:
            return False
        raise
    return True if modules.state.doubt == doubt else UNKNOWN


def _getattr(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) < 2 or not isinstance(arguments[1], str):
        return modules.state.unknown(importing=False)
    if not isinstance(arguments[0], Module):
        return modules.state.unknown(importing=False)
    try:
        return modules.member(arguments[0], arguments[1], importing=False)
    except Raised as error:
        if len(arguments) == 3 and is_exception(error.kind, AttributeError) is True:
            return arguments[2]
        raise


def _setattr(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) == 3 and isinstance(arguments[0], Module):
        if isinstance(arguments[1], str):
            arguments[0].names.setdefault(arguments[1], arguments[2] if not modules.state.shaky else UNKNOWN)
        else:
            modules.open_up(arguments[0])
    return None


def _globals(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    return Namespace(modules.state.caller.module)


def _vars(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    module = arguments[0] if arguments else modules.state.caller.module
    return Namespace(module) if isinstance(module, Module) else UNKNOWN


def _dir(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if arguments and isinstance(arguments[0], Module) and arguments[0].lazy is None:
        return Array(list(arguments[0].names), not arguments[0].open and not arguments[0].compiled)
    return UNKNOWN


def _exec(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    modules.open_up(modules.state.caller.module)
    return modules.state.unknown()


def _collection(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments:
        return Array([])
    listed = items(arguments[0])
    return Array(listed) if listed is not None else UNKNOWN


def _tuple(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    listed = items(arguments[0]) if arguments else []
    return tuple(listed) if listed is not None else UNKNOWN


def _frozenset(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    listed = items(arguments[0]) if arguments else []
    return frozenset(listed) if listed is not None and all(map(is_constant, listed)) else UNKNOWN


def _dict(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments:
        return Table(dict(keywords))
    if isinstance(arguments[0], Table):
        return Table({**arguments[0].items, **keywords}, arguments[0].exact)
    return UNKNOWN


def _any(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    answers = [truth(item) for item in items(arguments[0]) or [UNKNOWN]] if arguments else [None]
    return True if True in answers else UNKNOWN if None in answers else False


def _all(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    listed = items(arguments[0]) if arguments else None
    answers = [truth(item) for item in listed] if listed is not None else [None]
    return False if False in answers else UNKNOWN if None in answers else True


def _constant_call(function: Callable[..., Any]) -> Native:
    def call(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
        if keywords or not all(map(is_constant, arguments)):
            return UNKNOWN
        try:
            return function(*arguments)
        except (TypeError, ValueError, IndexError):
            return UNKNOWN

    return Native(call)


def _cached(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) == 1 and isinstance(arguments[0], Function):
        arguments[0].memory = {}
        return arguments[0]
    return Native(_cached)


def _same_function(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    return Native(lambda modules, arguments, keywords: arguments[0] if arguments else UNKNOWN)


def environ(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments or not isinstance(arguments[0], str) or arguments[0] in os.environ:
        return UNKNOWN
    return arguments[1] if len(arguments) > 1 else keywords.get("default")


def _path(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    return pathlib.PurePath(arguments[0]) if len(arguments) == 1 and isinstance(arguments[0], str) else UNKNOWN


def _import_structure(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    folder = _lazy.structure_argument(arguments[0] if arguments else keywords.get("module_path"))
    prefix = arguments[1] if len(arguments) > 1 else keywords.get("prefix")
    return _lazy.structure_of(folder, prefix if isinstance(prefix, str) else "") if folder else UNKNOWN


def _nothing(modules: Modules, arguments: Arguments, keywords: Keywords) -> Value:
    return None


def natives(version: str) -> dict[tuple[str, str], Value]:
    """The members of modules whose meaning is known, for a version of Python."""
    return {**_NATIVES, ("sys", "version_info"): _version_info(version)}


def _version_info(version: str) -> tuple[int | str, ...]:
    parts = [int(part) for part in version.split(".")[:3] if part.isdigit()]
    return (*parts, *[0] * (3 - len(parts)), "final", 0)


_METADATA = {"version": Native(_version), "PackageNotFoundError": importlib.metadata.PackageNotFoundError} | {
    "packages_distributions": Native(_packages_distributions),
    "metadata": Native(_metadata),
    "distribution": Native(_metadata),
}
_PACKAGING = {"parse": Native(_parse), "Version": Native(_parse), "InvalidVersion": InvalidVersion}
_NATIVES: dict[tuple[str, str], Value] = {
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
ENVIRON = _NATIVES["os", "environ"]

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
