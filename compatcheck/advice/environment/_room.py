"""How much disk an environment takes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from compatcheck.files import limits
from compatcheck.files.toml_text import parse_toml

LARGE = 100_000_000
"""Bytes; the wheels above it hold CUDA libraries, most of what a stack takes."""

UNPACKED_LARGE, UNPACKED = 2.0, 4.5
"""Bytes on disk for each byte of a wheel. Those of torch 2.5.1 for CUDA take 1.3 to 1.9, pure Python 3 to 5."""

_AT_ONCE = 8


class _File(BaseModel):
    url: str = ""
    path: str = ""
    size: int | None = None


class _Package(BaseModel):
    wheels: tuple[_File, ...] = ()
    sdist: _File | None = None
    archive: _File | None = None

    @property
    def files(self) -> tuple[_File, ...]:
        """The wheels; only where there are none, what they would be built from."""
        return self.wheels or tuple(each for each in (self.sdist, self.archive) if each)


class _Pylock(BaseModel):
    packages: tuple[_Package, ...] = ()


def needed_bytes(pylock: str, *, offline: bool = False) -> int:
    """Return how many bytes the wheels that uv chose for this machine take unpacked; 0 if the lock cannot be read.

    uv unpacks while it fetches, and links what it has unpacked into the environment: each is there once. A size that
    the index does not list is requested unless ``offline``, and counts 0 if it stays unknown.
    """
    try:
        packages = _Pylock.model_validate(parse_toml(pylock)).packages
    except (ValueError, RecursionError):
        return 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sizes = pool.map(lambda package: _size(package, offline), packages)
        return round(sum(size * (UNPACKED_LARGE if size > LARGE else UNPACKED) for size in sizes))


def _size(package: _Package, offline: bool) -> int:
    """Return the size of the largest file."""
    sizes = [file.size if file.size is not None else _local_size(file) for file in package.files]
    if package.files and not any(sizes) and not offline:
        return _remote_size(package.files[0].url)
    return max(sizes, default=0)


def _local_size(file: _File) -> int:
    path = file.path
    if file.url.startswith("file:"):
        try:
            path = unquote(urlsplit(file.url).path)
        except ValueError:
            return 0
    return os.path.getsize(path) if os.path.isfile(path) else 0


def _remote_size(url: str) -> int:
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    if not url.startswith(("https://", "http://")):
        return 0
    try:
        with urlopen(Request(url, method="HEAD"), timeout=limits.SIZE_SECONDS) as answer:
            return int(answer.headers.get("Content-Length") or 0)
    except (OSError, ValueError, HTTPException):
        return 0
