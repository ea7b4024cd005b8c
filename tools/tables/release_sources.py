"""Keep the Python sources of releases, for the tables that are read from them.

    python -m tools.tables.release_sources FOLDER [PACKAGE...]

Of every final release since 2022, and of the core of the field from its first, FOLDER/<package>/<version>.zip holds the
modules, the stubs, the empty names of compiled modules and the metadata. A release that lies there is passed over, so a
run that was broken off is taken up by the next, and a daily run reads new releases alone. Nothing is installed or run.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from packaging.version import Version

from tools.tables import _index
from tools.tables._interface_packages import SINCE, oldest_of, packages
from tools.tables._statements import module_of

AT_ONCE = 4
_ASIDE = frozenset({"tests", "test", "testing_data", "examples", "benchmarks", "docs", "_vendor", "node_modules"})
"""Folders of a wheel that no import of a training run reaches."""


def keep(folder: Path, package: str, version: Version, file: _index.File) -> str:
    """One release into its archive; says why where that fails."""
    place = folder / package / f"{version}.zip"
    part = place.with_suffix(".part")
    place.parent.mkdir(parents=True, exist_ok=True)
    module = module_of(package).partition(".")[0]
    try:
        with (
            _index.opened(file) as stream,
            zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as kept,
        ):
            taken = _from_wheel(stream, kept) if file.filename.endswith(".whl") else _from_sources(stream, kept, module)
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, UnicodeError, NotImplementedError) as error:
        part.unlink(missing_ok=True)
        return f"{package} {version}: {type(error).__name__} {error}"
    if not taken:
        part.unlink(missing_ok=True)
        return f"{package} {version}: {file.filename} holds no module"
    part.rename(place)
    return ""


def _keep(folder: Path, package: str, release: tuple[Version, _index.File]) -> str:
    return keep(folder, package, *release)


def _from_wheel(stream: IO[bytes], kept: zipfile.ZipFile) -> int:
    taken = 0
    with zipfile.ZipFile(stream) as wheel:
        for member in sorted(wheel.infolist(), key=lambda each: each.header_offset):
            name = wanted(member.filename)
            if name:
                kept.writestr(name, b"" if name.endswith(_index.COMPILED) else wheel.read(member))
                taken += name.endswith(".py")
    return taken


def _from_sources(stream: IO[bytes], kept: zipfile.ZipFile, module: str) -> int:
    """The same of an archive of sources, where they are kept as they are installed."""
    taken = 0
    with tarfile.open(fileobj=stream, mode="r:*") as archive:
        members = [each for each in archive if each.isfile()]
        root = _index.root_of([each.name for each in members], module)
        for member in members if root is not None else []:
            inside = member.name.removeprefix(root or "")
            content = archive.extractfile(member)
            if content is None:
                continue
            if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO"):
                kept.writestr("sdist.dist-info/METADATA", content.read())
            elif member.name.startswith(root or "") and inside.startswith((f"{module}/", f"{module}.py")):
                name = wanted(inside)
                if name and not name.endswith(_index.COMPILED):
                    kept.writestr(name, content.read())
                    taken += name.endswith(".py")
    return taken


def wanted(name: str) -> str | None:
    """Where a file of a wheel is installed, if it is kept: a module, a stub or what the release says of itself."""
    parts = PurePosixPath(name).parts
    if len(parts) > 2 and parts[0].endswith(".data"):
        parts = parts[2:] if parts[1] in ("purelib", "platlib") else ()
    if not parts or parts[0] == "/" or ".." in parts:
        return None
    if len(parts) == 2 and parts[0].endswith(".dist-info"):
        return "/".join(parts) if parts[1] in ("METADATA", "WHEEL", "variant.json", "entry_points.txt") else None
    if _ASIDE.intersection(parts[:-1]) or not parts[-1].endswith((".py", ".pyi", *_index.COMPILED)):
        return None
    return "/".join(parts)


def fetch(folder: Path, chosen: Sequence[str]) -> None:
    """Keep what is new of some packages, and say on standard error what could not be had."""
    address = _index.index()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for package in chosen:
            oldest = oldest_of(package)
            offered = _index.offered(address, package, "" if oldest else SINCE)
            offered = {version: file for version, file in offered.items() if version >= Version(oldest or "0")}
            new = [each for each in offered.items() if not (folder / package / f"{each[0]}.zip").exists()]
            for problem in pool.map(partial(_keep, folder, package), new):
                if problem:
                    print(problem, file=sys.stderr)
            print(f"{package}: {len(offered)} releases, {len(new)} of them new", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    given = parser.parse_args()
    fetch(given.folder, given.packages or packages())


if __name__ == "__main__":
    main()
