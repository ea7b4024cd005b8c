"""Lay out the modules of releases as installers do, for import_failures.py to follow.

    python tools/tables/lay_out.py FOLDER [--newer] [--every N] [PACKAGE...]

Each release lies in FOLDER/<distribution>/<version>: its .py files, empty files for its compiled modules, its METADATA
and a RECORD. Without packages: all that import_failures.py follows. A release that lies there already is passed over,
so a run that was broken off is taken up by the next. Nothing is installed or run. A large wheel is read in pieces where
the index answers requests for ranges; what has to be downloaded whole is deleted at once. The index is the one that pip
is configured for, else PyPI; it has to answer in JSON:
https://packaging.python.org/en/latest/specifications/simple-repository-api/

The releases of a package that the table has are those it lists, and with --newer those that came after; of any other
package they are the first and the last of each minor version.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import urljoin

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

sys.path.insert(0, str(Path(__file__).parents[2]))

from compatcheck.matrix.compile import read_toml
from tools.tables._statements import PROVIDERS, STATEMENTS, module_of

PYPI = "https://pypi.org/simple"
TABLE = Path(__file__).parents[2] / "matrix" / "tables" / "import-failures.toml"
AT_ONCE = 3
LARGE = 24 << 20
"""From this size on a wheel is read in pieces."""
PIECE = 1 << 20
COMPILED = (".so", ".pyd")
_TIMEOUT = 180


class File(NamedTuple):
    """What the index offers of a release."""

    filename: str
    url: str
    size: int


def index_of(configuration: Iterable[str], environment: Mapping[str, str]) -> str:
    """The address that pip asks, from what ``pip config list`` prints; a variable goes before a file."""
    told = dict(line.split("=", 1) for line in configuration if "=" in line)
    named = (told.get(f"{part}.index-url", "").strip("'\"") for part in (":env:", "install", "global"))
    return next(filter(None, [environment.get("PIP_INDEX_URL", ""), *named]), PYPI).rstrip("/")


def index() -> str:
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    return index_of(asked.stdout.splitlines(), os.environ)


def offered(address: str, package: str, since: str = "") -> dict[Version, File]:
    """The final releases of a package with the file to read of each; nothing of a package the index does not know.

    ``since`` is the day of the first upload that counts.
    """
    page = f"{address}/{package}/"
    request = urllib.request.Request(page, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            files = json.load(answer)["files"]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return {}
    return best([file for file in files if file.get("upload-time", "9") >= since], page)


def best(files: Iterable[Mapping[str, Any]], page: str) -> dict[Version, File]:
    """Of each final release that was not withdrawn the file that is read most easily."""
    found: dict[Version, tuple[int, File]] = {}
    for file in files:
        version, rank = ranked(file["filename"])
        if version is None or version.is_prerelease or file.get("yanked"):
            continue
        one = rank, File(file["filename"], urljoin(page, file["url"]), file.get("size") or 0)
        found[version] = min(one, found.get(version, one))
    return {version: found[version][1] for version in sorted(found)}


def ranked(filename: str) -> tuple[Version | None, int]:
    """The version of a file and its place: wheels for anything, wheels for Linux, sources; None for other files."""
    try:
        _, version, _, tags = parse_wheel_filename(filename)
    except (InvalidWheelFilename, InvalidVersion):
        pass
    else:
        if any(tag.platform == "any" for tag in tags):
            return version, 0
        if any("linux" in tag.platform and tag.platform.endswith("x86_64") for tag in tags):
            return version, 1 if any(tag.abi in ("cp311", "abi3") for tag in tags) else 2
        return None, 9
    try:
        return parse_sdist_filename(filename)[1], 3
    except (InvalidSdistFilename, InvalidVersion):
        return None, 9


def chosen(versions: Sequence[Version], listed: Sequence[str], newer: bool, every: int) -> list[Version]:
    """What to lay out of the releases of a package, of which the table lists some or none."""
    if listed:
        named = list(map(Version, listed))
        return [*filter(versions.__contains__, named), *(each for each in versions if newer and each > named[-1])]
    groups = (list(group) for _, group in itertools.groupby(versions, key=lambda each: each.release[:2]))
    return sorted({each for group in groups for each in (*group[:: every or len(group)], group[-1])})


def lay_out(folder: Path, package: str, version: Version, file: File) -> str:
    """One release into its place; says why where that fails."""
    place = folder / package / str(version)
    part = place.with_name(f"{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with opened(file) as stream:
            if file.filename.endswith(".whl"):
                written = _from_wheel(stream, part)
            else:
                written = _from_sources(stream, part, module_of(package).partition(".")[0])
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, UnicodeDecodeError) as error:
        shutil.rmtree(part, ignore_errors=True)
        return f"{package} {version}: {type(error).__name__} {error}"
    if not written or not any(name.endswith(".py") for name in written):
        shutil.rmtree(part, ignore_errors=True)
        return f"{package} {version}: {file.filename} holds no module"
    info = part / f"{canonicalize_name(package).replace('-', '_')}-{version}.dist-info"
    os.rename(part / "METADATA", _made(info) / "METADATA")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in sorted(written)), encoding="utf-8")
    part.rename(place)
    return ""


def _from_wheel(stream: IO[bytes], place: Path) -> list[str]:
    """Write the modules and the metadata of a wheel; returns the names of the modules."""
    written = []
    with zipfile.ZipFile(stream) as wheel:
        for member in sorted(wheel.infolist(), key=lambda each: each.header_offset):
            name = module_file(member.filename)
            if member.filename.endswith(".dist-info/METADATA"):
                _write(place / "METADATA", wheel.read(member))
            elif name:
                _write(place / name, wheel.read(member) if name.endswith(".py") else b"")
                written.append(name)
    return written


def _from_sources(stream: IO[bytes], place: Path, module: str) -> list[str]:
    """The same of an archive of sources, where they are kept as they are installed."""
    written = []
    with tarfile.open(fileobj=stream, mode="r:*") as archive:
        members = [each for each in archive if each.isfile()]
        root = root_of([each.name for each in members], module)
        texts: dict[str, bytes] = {}
        for member in members if root is not None else []:
            inside = member.name.removeprefix(root or "")
            if PurePosixPath(member.name).name in ("PKG-INFO", "requires.txt"):
                texts.setdefault(PurePosixPath(member.name).name, _content(archive, member))
            elif member.name.startswith(root or "") and inside.startswith((f"{module}/", f"{module}.py")):
                name = module_file(inside)
                if name and name.endswith(".py"):
                    _write(place / name, _content(archive, member))
                    written.append(name)
        if written:
            _write(place / "METADATA", metadata(texts.get("PKG-INFO", b""), texts.get("requires.txt", b"")))
    return written


def module_file(name: str) -> str | None:
    """Where a file of a wheel is installed, if it is a module; None for any other and for one that leads elsewhere."""
    parts = PurePosixPath(name).parts
    if len(parts) > 2 and parts[0].endswith(".data"):
        parts = parts[2:] if parts[1] in ("purelib", "platlib") else ()
    if not parts or parts[0] == "/" or ".." in parts or not parts[-1].endswith((".py", *COMPILED)):
        return None
    return "/".join(parts)


def root_of(names: Sequence[str], module: str) -> str | None:
    """The folder of an archive of sources in which the module lies: at its top, or in src or python."""
    tops = {PurePosixPath(name).parts[0] for name in names}
    for top, inside in itertools.product(sorted(tops), ("", "src/", "python/")):
        root = f"{top}/{inside}"
        if f"{root}{module}.py" in names or any(name.startswith(f"{root}{module}/") for name in names):
            return root
    return None


def metadata(information: bytes, requires: bytes) -> bytes:
    """The metadata of sources, with what setuptools keeps apart: what is required, up to the first section."""
    header, blank, text = information.replace(b"\r\n", b"\n").partition(b"\n\n")
    if b"\nRequires-Dist:" not in header:
        plain = itertools.takewhile(lambda line: not line.startswith(b"["), requires.splitlines())
        header = header.rstrip(b"\n") + b"".join(b"\nRequires-Dist: " + line.strip() for line in plain if line.strip())
    return header + (blank or b"\n\n") + text


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    return stream.read() if stream else b""


def _write(path: Path, content: bytes) -> None:
    _made(path.parent)
    path.write_bytes(content)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def opened(file: File) -> Iterator[IO[bytes]]:
    """The file to read from: by ranges where it is large and the index can do that, else downloaded."""
    if file.size >= LARGE and file.filename.endswith(".whl") and _has_ranges(file.url):
        yield io.BufferedReader(Remote(file), PIECE)
        return
    with tempfile.TemporaryFile() as stream:
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT) as answer:
            shutil.copyfileobj(answer, stream, PIECE)
        stream.seek(0)
        yield stream


def _has_ranges(url: str) -> bool:
    with urllib.request.urlopen(_ranged(url, 0, 0), timeout=_TIMEOUT) as answer:
        return bool(answer.status == 206)


def _ranged(url: str, first: int, last: int) -> urllib.request.Request:
    return urllib.request.Request(url, headers={"Range": f"bytes={first}-{last}"})


class Remote(io.RawIOBase):
    """A file of the index of which only the parts that are read are sent."""

    def __init__(self, file: File) -> None:
        super().__init__()
        self.file, self.at = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.file.size}[whence]
        return self.at

    def tell(self) -> int:
        return self.at

    def readinto(self, buffer: Any) -> int:
        last = min(self.at + len(buffer), self.file.size) - 1
        if last < self.at:
            return 0
        with urllib.request.urlopen(_ranged(self.file.url, self.at, last), timeout=_TIMEOUT) as answer:
            content = answer.read()
        buffer[: len(content)] = content
        self.at += len(content)
        return len(content)


def missing(
    folder: Path, address: str, package: str, newer: bool, every: int
) -> Iterator[tuple[Path, str, Version, File]]:
    """What of a package is not in the folder yet."""
    listed = read_toml(TABLE)["releases"].get(package, "").split()
    files = offered(address, package)
    if not files:
        print(f"{package}: nothing on {address}", file=sys.stderr)
    for version in chosen(list(files), listed, newer, every):
        if not (folder / package / str(version)).is_dir():
            yield folder, package, version, files[version]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    parser.add_argument("--newer", action="store_true", help="take releases after the last that the table lists, too")
    parser.add_argument("--every", type=int, default=0, metavar="N", help="take each Nth of a minor version, too")
    given = parser.parse_intermixed_args()
    address = index()
    packages = given.packages or sorted({*STATEMENTS, *PROVIDERS})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for package in packages:
            wanted = list(missing(given.folder, address, package, given.newer, given.every))
            for problem in pool.map(lambda each: lay_out(*each), wanted):
                if problem:
                    print(problem, file=sys.stderr)
            print(f"{package}: {len(wanted)} laid out or tried", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
