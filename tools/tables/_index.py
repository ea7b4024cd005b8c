"""The package index: which file to read of each release, and reading it in pieces where it is large.

The index is the one that pip is configured for, else PyPI; it has to answer in JSON:
https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import urljoin

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

PYPI = "https://pypi.org/simple"
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
    """Of each final release the file that is read most easily; those that were yanked stay in lock files."""
    found: dict[Version, tuple[int, File]] = {}
    for file in files:
        version, rank = ranked(file["filename"])
        if version is None or version.is_prerelease:
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


def root_of(names: Sequence[str], module: str) -> str | None:
    """The folder of an archive of sources in which the module lies: at its top, or in src or python."""
    tops = {PurePosixPath(name).parts[0] for name in names}
    for top, inside in itertools.product(sorted(tops), ("", "src/", "python/")):
        root = f"{top}/{inside}"
        if f"{root}{module}.py" in names or any(name.startswith(f"{root}{module}/") for name in names):
            return root
    return None


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
