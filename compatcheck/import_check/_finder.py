"""Where modules lie: the folders of the target, searched as Python's own finder does."""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import NamedTuple

from compatcheck.environment import Target
from compatcheck.files import limits
from compatcheck.files.reading import open_text
from compatcheck.installed.distributions import Inventory, scan

_EXTENSIONS = (".so", ".pyd")
_MAPPING = re.compile(r"^MAPPING(?:: [^=]+)? = (\{.*\})$", re.MULTILINE)


class Found(NamedTuple):
    """A module on disk: "source", "package", "namespace", "compiled" or "stdlib"."""

    kind: str
    file: str | None
    folders: tuple[str, ...] = ()


class Finder:
    """Finds modules for one target; every folder is listed once."""

    def __init__(self, target: Target) -> None:
        self.inventory: Inventory = scan(target)
        self.versions = {found.name: found.version for found in self.inventory.installed}
        self.folders = target.search_path
        self._listed: dict[str, frozenset[str]] = {}
        self._owners: dict[str, str] | None = None
        self._editable = self._editable_modules()
        self._hooks = self._hook_lines()

    def find(self, name: str, folders: tuple[str, ...] | None = None) -> Found | None:
        """The module of this last name in the folders of its package, or on the search path."""
        if folders is None:
            if name in self._editable:
                return self._find_in(os.path.basename(self._editable[name]), os.path.dirname(self._editable[name]))
            folders = self.folders
        portions: list[str] = []
        for folder in folders:
            found = self._find_in(name, folder)
            if found and found.kind != "namespace":
                return found
            if found:
                portions += found.folders
        return Found("namespace", None, tuple(portions)) if portions else None

    def may_be_hooked(self, name: str) -> bool:
        """Whether start-up code that was not read could provide the module."""
        return name in self._hooks

    def owner(self, path: str) -> str | None:
        """The distribution that installed a file, by the records of all of them."""
        if self._owners is None:
            self._owners = self._read_records()
        for folder in self.folders:
            if path.startswith(folder + os.sep):
                relative = path[len(folder) + 1 :].replace(os.sep, "/")
                found = self._owners.get(relative)
                if found is None:
                    found = self._owners.get(relative.partition("/")[0])
                return found
        return None

    def provider(self, module: str) -> str | None:
        """The distribution that holds a module of this dotted name."""
        top = module.partition(".")[0]
        found = self.find(top)
        if found is None:
            return None
        return self.owner(found.file or os.path.join(found.folders[0], "__init__.py"))

    def top_level(self) -> dict[str, str]:
        """Every module of the top level that a record names, with its distribution."""
        if self._owners is None:
            self._owners = self._read_records()
        names = ((path.partition("/")[0].partition(".")[0], owner) for path, owner in self._owners.items())
        return {name: owner for name, owner in names if name.isidentifier()}

    def _find_in(self, name: str, folder: str) -> Found | None:
        entries = self._entries(folder)
        path = os.path.join(folder, name)
        if name in entries:
            inside = self._entries(path)
            if "__init__.py" in inside:
                return Found("package", os.path.join(path, "__init__.py"), (path,))
            if any(each.startswith("__init__.") and each.endswith((*_EXTENSIONS, ".pyc")) for each in inside):
                return Found("compiled", path, (path,))
        compiled = next((e for e in self._entries_with_stem(folder, name) if e.endswith(_EXTENSIONS)), None)
        if compiled:
            return Found("compiled", os.path.join(folder, compiled))
        if f"{name}.py" in entries:
            return Found("source", f"{path}.py")
        if f"{name}.pyc" in entries:
            return Found("compiled", f"{path}.pyc")
        if name in entries and os.path.isdir(path):
            return Found("namespace", None, (path,))
        return None

    def _entries_with_stem(self, folder: str, name: str) -> list[str]:
        return [entry for entry in self._entries(folder) if entry.startswith(f"{name}.")]

    def _entries(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            try:
                self._listed[folder] = frozenset(os.listdir(folder))
            except OSError:
                self._listed[folder] = frozenset()
        return self._listed[folder]

    def _editable_modules(self) -> dict[str, str]:
        """What setuptools' finders for editable installs map: module name to path."""
        mapped: dict[str, str] = {}
        for folder in self.folders:
            for entry in self._entries(folder):
                if entry.startswith("__editable__") and entry.endswith("_finder.py"):
                    match = _MAPPING.search(_read_text(os.path.join(folder, entry)))
                    mapped.update(_literal_table(match[1]) if match else {})
        return {name: path for name, path in mapped.items() if "." not in name}

    def _hook_lines(self) -> frozenset[str]:
        """Every word of the ``import`` lines in ``.pth`` files, and of the modules these lines import."""
        words: set[str] = set()
        for folder in self.folders:
            for entry in self._entries(folder):
                if entry.endswith(".pth"):
                    text = _read_text(os.path.join(folder, entry))
                    lines = [line for line in text.splitlines() if line.startswith("import")]
                    words.update(word for line in lines for word in re.findall(r"\w+", line))
        return frozenset(words)

    def _read_records(self) -> dict[str, str]:
        owners: dict[str, str] = {}
        for found in self.inventory.installed:
            for line in _read_text(os.path.join(found.metadata, "RECORD")).splitlines():
                path = line.rpartition(",")[0].rpartition(",")[0].strip('"')
                if path.endswith((".py", ".so", ".pyd")) and not path.startswith(("..", "/")):
                    owners[path] = found.name
                    owners.setdefault(path.partition("/")[0], found.name)
            owners.setdefault(found.name.replace("-", "_"), found.name)
        return owners


def is_stdlib(name: str) -> bool:
    """Whether Python itself has a module of this top-level name; the few that came and went count as there."""
    return name in sys.stdlib_module_names or name in _NO_LONGER_STDLIB


_NO_LONGER_STDLIB = {
    "__main__", "distutils", "imp", "asynchat", "asyncore", "smtpd", "binhex", "formatter", "parser", "symbol",
    "cgi", "cgitb", "crypt", "imghdr", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd",
    "sunau", "telnetlib", "uu", "xdrlib", "aifc", "audioop", "chunk", "lib2to3", "compression", "annotationlib",
}  # fmt: skip


def _literal_table(text: str) -> dict[str, str]:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return {}
    return (
        {k: v for k, v in value.items() if isinstance(k, str) and isinstance(v, str)} if isinstance(value, dict) else {}
    )


def _read_text(path: str) -> str:
    try:
        with open_text(path) as stream:
            return stream.read(limits.IMPORTED_BYTES)
    except OSError:
        return ""
