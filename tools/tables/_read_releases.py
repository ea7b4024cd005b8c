"""The modules of releases, each text read once: what was read is kept by the text, which most releases share.

    python -m tools.tables._read_releases FOLDER [PACKAGE...]

FOLDER holds archives of releases as release_sources.py keeps them, and beside them <package>.sqlite with what was read.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import sqlite3
import sys
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from compatcheck.interfaces.module_names import COMPILED, module_name
from compatcheck.interfaces.reading import read_module
from compatcheck.interfaces.summary import DEFINED, FORMAT, OPEN, Module
from tools.tables._interface_packages import packages

_READERS = 2
_TABLES = """
create table if not exists texts (hash blob primary key, module blob) without rowid;
create table if not exists releases (version text primary key, modules blob);
"""


def versions_kept(folder: Path, package: str) -> list[Version]:
    """The releases of which the folder has the sources, in order."""
    return sorted(Version(path.stem) for path in (folder / package).glob("*.zip"))


class Text(NamedTuple):
    """One file of a release that was not read before, by the hash of its name and content."""

    mark: bytes
    name: str
    module: str
    is_package: bool
    text: bytes


def _read(given: Text) -> tuple[bytes, bytes]:
    if given.name.endswith(COMPILED):
        found = Module({OPEN: DEFINED})
    else:
        found = read_module(given.text.decode("utf-8", "replace"), given.module, given.is_package)
    return given.mark, zlib.compress(pickle.dumps(found), 1)


class Kept:
    """What was read of one package's releases."""

    def __init__(self, folder: Path, package: str, pool: Executor | None = None) -> None:
        self.folder, self.package = folder, package
        self.base = sqlite3.connect(folder / f"{package}.{FORMAT}.sqlite")
        self.base.executescript(_TABLES)
        self.pool = pool or ProcessPoolExecutor(_READERS)

    def read(self, version: Version) -> bool:
        """Read one release unless it is known; says whether it was read now."""
        if self.base.execute("select 1 from releases where version = ?", (str(version),)).fetchone():
            return False
        hashes: dict[str, bytes] = {}
        new: dict[bytes, Text] = {}
        with zipfile.ZipFile(self.folder / self.package / f"{version}.zip") as archive:
            for name in archive.namelist():
                module, is_package = module_name(name)
                if module is None:
                    continue
                text = archive.read(name) if name.endswith((".py", ".pyi")) else b""
                mark = hashlib.sha1(f"{name}\0".encode() + text).digest()
                key = f"{module}!" if name.endswith(".pyi") else module
                if key not in hashes or name.endswith(".py"):
                    hashes[key] = mark
                if not self._has(mark):
                    new[mark] = Text(mark, name, module, is_package, text)
        with self.base:
            self.base.executemany("insert into texts values (?, ?)", self.pool.map(_read, new.values(), chunksize=8))
            self.base.execute("insert into releases values (?, ?)", (str(version), zlib.compress(pickle.dumps(hashes))))
        return True

    def _has(self, mark: bytes) -> bool:
        return self.base.execute("select 1 from texts where hash = ?", (mark,)).fetchone() is not None

    def modules(self, version: Version, before: dict[bytes, Module]) -> dict[str, Module]:
        """The modules of a release that was read; stubs have ``!`` behind their name. ``before`` keeps texts."""
        row = self.base.execute("select modules from releases where version = ?", (str(version),)).fetchone()
        hashes: dict[str, bytes] = pickle.loads(zlib.decompress(row[0]))
        found = {}
        now = {}
        for module, mark in hashes.items():
            known = before.get(mark) or self._kept(mark)
            found[module] = now[mark] = known
        before.clear()
        before.update(now)
        return found

    def module_names(self) -> frozenset[str]:
        """The modules that any release has as a text."""
        rows = self.base.execute("select modules from releases").fetchall()
        return frozenset(name for row in rows for name in pickle.loads(zlib.decompress(row[0])))

    def _kept(self, mark: bytes) -> Module:
        row = self.base.execute("select module from texts where hash = ?", (mark,)).fetchone()
        known: Module = pickle.loads(zlib.decompress(row[0]))
        return known


def releases(folder: Path, package: str) -> Iterator[tuple[Version, dict[str, Module]]]:
    """Every release that is there with its modules, oldest first."""
    kept = Kept(folder, package)
    before: dict[bytes, Module] = {}
    for version in versions_kept(folder, package):
        kept.read(version)
        yield version, kept.modules(version, before)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    given = parser.parse_args()
    with ProcessPoolExecutor(_READERS) as pool:
        for package in given.packages or packages():
            kept = Kept(given.folder, package, pool)
            new = sum(kept.read(version) for version in versions_kept(given.folder, package))
            print(f"{package}: {new} releases read", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
