"""May an extension module define a name: its stubs and its constants are read, it is never loaded.

Names that C code gives to Python stand in the library as text, but for a few short ones that the compiler writes into
instructions; torch declares those in its stubs. A name that stands in neither is surely not there.
"""

from __future__ import annotations

import glob
import mmap
import os
import re

from compatcheck.files import limits
from compatcheck.files.reading import open_bytes, open_text
from compatcheck.import_check import _source
from compatcheck.import_check._values import Module

_STUBS: dict[str, str] = {}
_SEEN: dict[tuple[str, str], bool] = {}


def may_define(extension: object, holder: Module, name: str) -> bool:
    """Whether the names that ``holder`` took over from an extension module may include this one."""
    if not isinstance(extension, Module) or extension.file is None:
        return True
    key = extension.file, name
    if key not in _SEEN:
        _SEEN[key] = _may_define(extension.file, holder, name)
    return _SEEN[key]


def _may_define(file: str, holder: Module, name: str) -> bool:
    folder = os.path.dirname(file)
    stubs = glob.glob(os.path.join(folder, "_C", "*.pyi"))
    libraries = glob.glob(os.path.join(folder, "lib", "*torch_python*"))
    if not stubs or not libraries:
        return True
    word = re.compile(rf"\b{re.escape(name)}\b")
    if word.search(_source.read(holder.file or "")) or any(word.search(_stub(stub)) for stub in stubs):
        return True
    return any(_holds(library, name) for library in libraries)


def _stub(path: str) -> str:
    if path not in _STUBS:
        try:
            with open_text(path) as stream:
                _STUBS[path] = stream.read(limits.IMPORTED_BYTES)
        except OSError:
            _STUBS[path] = ""
    return _STUBS[path]


def _holds(path: str, name: str) -> bool:
    """Whether the library holds the name as a whole word anywhere."""
    try:
        with open_bytes(path) as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return re.search(rb"(?<![A-Za-z0-9_])" + name.encode() + rb"(?![A-Za-z0-9_])", view) is not None
    except (OSError, ValueError):
        return True
