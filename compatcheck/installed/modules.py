"""The modules of an installed distribution, each read from its file when it is asked for; nothing is executed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import read_bytes, read_text
from compatcheck.installed.distributions import Installation
from compatcheck.interfaces.module_names import COMPILED, module_name
from compatcheck.interfaces.reading import read_module
from compatcheck.interfaces.summary import DEFINED, OPEN, Module

limits.RECORD_BYTES, limits.MODULE_BYTES, limits.MODULES_BYTES = 16 << 20, 2 << 20, 24 << 20
_LAST_WORD = re.compile(r"(?<=[a-z0-9])[A-Z][a-z]+\Z")
_DEFINES = rb"""(?m)(?:class|def|as)\s+%b\b|^\s*%b\s*[:=]|["']%b["']"""
_ANYTHING = Module({OPEN: DEFINED})


class InstalledModules(Mapping[str, Module]):
    """The modules by their full names. One that cannot be read, or is too much to read, may hold anything."""

    def __init__(self, files: Mapping[str, tuple[str, bool]], on_module: Callable[[str], None]) -> None:
        self._files, self._on_module = files, on_module
        self._read: dict[str, Module] = {}
        self._written: dict[str, bool] = {}
        self._left = limits.MODULES_BYTES

    def __contains__(self, module: object) -> bool:
        return module in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, module: str) -> Module:
        if module not in self._read:
            path, is_package = self._files[module]
            self._on_module(module)
            self._read[module] = self._module(path, module, is_package)
        return self._read[module]

    def is_written(self, name: str) -> bool:
        """Whether any of the files may define a name: by a statement, or in a table of names.

        A name without its last word counts for it: packages fall back from ``BertTokenizerFast`` to ``BertTokenizer``.
        """
        if name not in self._written:
            names = dict.fromkeys((name, _LAST_WORD.sub("", name)))
            self._written[name] = any(_defines(path, each) for each in names for path, _ in self._files.values())
        return self._written[name]

    def _module(self, path: str, module: str, is_package: bool) -> Module:
        if path.endswith(COMPILED):
            return _ANYTHING
        try:
            text = read_text(path, min(limits.MODULE_BYTES, self._left))
            self._left -= len(text)
            return read_module(text, module, is_package)
        except (InputError, RecursionError):
            return _ANYTHING


def _defines(path: str, name: str) -> bool:
    try:
        text = b"" if path.endswith(COMPILED) else read_bytes(path, limits.MODULE_BYTES)
    except InputError:
        return True
    word = name.encode()
    return word in text and re.search(_DEFINES % ((re.escape(word),) * 3), text) is not None


def record_of(found: Installation) -> str:
    """The list of the files that an installer wrote; raises `InputError` where there is none."""
    return read_text(os.path.join(found.metadata, "RECORD"), limits.RECORD_BYTES)


def modules_of(
    found: Installation, record: str, on_module: Callable[[str], None] = lambda module: None
) -> tuple[InstalledModules, InstalledModules]:
    """The modules that a record lists, and those of stubs."""
    code: dict[str, tuple[str, bool]] = {}
    stubs: dict[str, tuple[str, bool]] = {}
    for line in record.splitlines():
        path = line.rpartition(",")[0].rpartition(",")[0].strip('"')
        module, is_package = module_name(path)
        if module is None or path.startswith("/") or ".." in path.split("/"):
            continue
        kind = stubs if path.endswith(".pyi") else code
        if module not in kind or path.endswith(".py"):
            kind[module] = os.path.join(found.folder, *path.split("/")), is_package
    return InstalledModules(code, on_module), InstalledModules(stubs, on_module)
