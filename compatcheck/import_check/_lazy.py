"""Modules that import their parts when a name is asked for: the ``_LazyModule`` of transformers, TRL and diffusers.

Source: https://github.com/huggingface/transformers/blob/main/src/transformers/utils/import_utils.py
"""

from __future__ import annotations

import os
import re
from typing import Protocol

from compatcheck.files import limits
from compatcheck.files.reading import open_text
from compatcheck.import_check import _source
from compatcheck.import_check._values import UNKNOWN, Array, Class, Lazy, Module, Raised, Table, Value, truth

GUARDED = "?"
"""Stands for backends that decide whether a name is a placeholder; nothing is claimed of such a name."""

_FALLBACK = ("TokenizerFast", "Tokenizer", "ImageProcessorFast", "ImageProcessor")
_DECORATED = re.compile(r"^@(?:requires|export)\b[\s\S]*?^(?:class|def) (\w+)", re.MULTILINE)
_LISTED = re.compile(r"^__all__ *=[^\[]*\[([^\]]*)\]", re.MULTILINE)


class Host(Protocol):
    """What serving a name asks of the modules of the host."""

    def load(self, name: str) -> Value: ...

    def member(self, module: Module, name: str, importing: bool) -> Value: ...

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value: ...

    def unknown(self) -> Value: ...


def lazy_module(kind: Class, arguments: list[Value], keywords: dict[str, Value]) -> Module | None:
    """The module that ``_LazyModule(name, file, import_structure, ...)`` makes, or None where that is not known."""
    given = dict(
        zip(("name", "module_file", "import_structure", "module_spec", "extra_objects"), arguments), **keywords
    )
    name, file, structure = given.get("name"), given.get("module_file"), given.get("import_structure")
    if not isinstance(name, str) or not isinstance(file, str):
        return None
    extra = given.get("extra_objects")
    first, last = kind.lines
    source = "\n".join(_source.read(kind.module.file or "").split("\n")[first - 1 : last])
    module = Module(name, file, (os.path.dirname(file),))
    module.names.update(__name__=name, __file__=file, __package__=name)
    homes, guarded, exact = _homes(structure)
    modules = {".".join(home.split(".")[: i + 1]) for home in homes for i in range(home.count(".") + 1)}
    module.lazy = Lazy(
        {served: home for home, names in homes.items() for served in names},
        frozenset(modules),
        extra.items if isinstance(extra, Table) else {},
        frozenset(guarded),
        exact and (extra is None or isinstance(extra, Table)),
        "raise RuntimeError(" in source,
        "_object_missing_backend" in source,
    )
    return module


def _homes(structure: Value) -> tuple[dict[str, list[str]], set[str], bool]:
    """Submodule to names; the names behind backends; and whether that is all."""
    if not isinstance(structure, Table):
        return {}, set(), False
    homes: dict[str, list[str]] = {}
    guarded: set[str] = set()
    exact = structure.exact
    parts: list[tuple[bool, Value, Value]] = []
    for key, value in structure.items.items():
        if isinstance(key, frozenset):
            exact = exact and isinstance(value, Table) and value.exact
            parts += [(bool(key), *item) for item in value.items.items()] if isinstance(value, Table) else []
        else:
            parts.append((False, key, value))
    for is_guarded, home, value in parts:
        items = getattr(value, "items", value)
        if not isinstance(items, (list, tuple)) or not getattr(value, "exact", True) or not isinstance(home, str):
            exact, items = False, [item for item in items if isinstance(item, str)] if isinstance(items, list) else []
        names = [item for item in items if isinstance(item, str)]
        homes.setdefault(str(home), []).extend(names)
        guarded.update(names if is_guarded else ())
    return homes, guarded, exact


def member(host: Host, module: Module, lazy: Lazy, name: str) -> tuple[Value] | None:
    """What a lazy module gives for a name; None where it has none of that name."""
    if name in module.names:
        return (module.names[name],)
    if name in lazy.objects:
        return (lazy.objects[name],)
    if name in lazy.guarded and not _torch_serves(host, lazy, name):
        return (host.unknown(),)
    home = lazy.homes.get(name, name if name in lazy.modules else None)
    if home is None:
        unsure = not lazy.exact or (lazy.forgiving and name.endswith(_FALLBACK))
        return (host.unknown(),) if unsure else None
    if lazy.forgiving and name.endswith(_FALLBACK):
        return (host.unknown(),)
    try:
        part = host.load(f"{module.name}.{home}")
    except Raised as error:
        if not lazy.wraps:
            raise
        wrapped = Raised(RuntimeError, error.missing, error.text)
        wrapped.trail = error.trail
        raise wrapped from None
    if name not in lazy.homes or not isinstance(part, Module):
        return (part,)
    value = host.member(part, name, importing=False)
    module.names[name] = value
    return (value,)


def _torch_serves(host: Host, lazy: Lazy, name: str) -> bool:
    """A name of a ``modeling_`` file needs torch alone, and torch is surely taken as available."""
    if not lazy.homes.get(name, "").rpartition(".")[2].startswith("modeling_"):
        return False
    checks = host.load("transformers.utils.import_utils")
    if not isinstance(checks, Module):
        return False
    return truth(host.call(host.member(checks, "is_torch_available", False), [], {})) is True


def structure_of(folder: str, prefix: str) -> Table:
    """What ``define_import_structure`` reads from the files of a folder."""
    plain: dict[str, Value] = {}
    guarded: dict[str, Value] = {}
    for path, _, files in os.walk(folder):
        within = os.path.relpath(path, folder).replace(os.sep, ".")
        for file in sorted(files):
            if not file.endswith(".py") or file == "__init__.py" or file.startswith(("convert_", "modular_")):
                continue
            key = ".".join(part for part in (prefix, within if within != "." else "", file[:-3]) if part)
            free, behind = _exports(os.path.join(path, file), file)
            if free:
                plain[key] = Array(list(free))
            if behind:
                guarded[key] = Array(list(behind))
    return Table({frozenset(): Table(plain), frozenset({GUARDED}): Table(guarded)})


def _exports(path: str, file: str) -> tuple[list[str], list[str]]:
    """The names of one file that nothing stands before, and those behind a backend."""
    try:
        with open_text(path) as stream:
            text = stream.read(limits.IMPORTED_BYTES)
    except OSError:
        return [], []
    decorated = _DECORATED.findall(text) if "@requires" in text or "@export" in text else []
    listed = _LISTED.findall(text)
    names = re.findall(r"[\"'](\w+)[\"']", listed[-1]) if listed else []
    if file.startswith(("modeling_", "image_processing", "video_", "processing_")) or "_fast" in file:
        return [], [*names, *decorated]
    return [name for name in names if name not in decorated], decorated


def structure_argument(value: Value) -> str | None:
    """The folder that ``define_import_structure`` is called for."""
    if value is UNKNOWN or value is None:
        return None
    path = str(value)
    return os.path.dirname(path) if path.endswith(".py") else path
