"""How much disk an environment takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote, urlsplit

from compatcheck.files import limits
from compatcheck.files.toml_text import parse_toml

LARGE = 100_000_000
"""Bytes; the wheels above it hold CUDA libraries, most of what a stack takes."""

UNPACKED_LARGE, UNPACKED = 2.0, 4.5
"""Bytes on disk for each byte of a wheel. Those of torch 2.5.1 for CUDA take 1.3 to 1.9, pure Python 3 to 5."""

_AT_ONCE = 8


def needed_bytes(pylock: str, *, offline: bool = False) -> int:
    """What the wheels that uv chose for this machine take unpacked.

    uv unpacks while it fetches, and links what it has unpacked into the environment: each is there once. A size that
    the index does not tell is asked for, unless ``offline``; one that nobody tells counts nothing.
    """
    packages = parse_toml(pylock).get("packages", ())
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sizes = pool.map(lambda package: _size(package, offline), packages)
        return round(sum(size * (UNPACKED_LARGE if size > LARGE else UNPACKED) for size in sizes))


def _size(package: Mapping[str, Any], offline: bool) -> int:
    """The largest of the wheels; only where there are none, of what they would be built from."""
    others = [package[key] for key in ("sdist", "archive") if key in package]
    files = package.get("wheels") or others
    sizes = [int(file["size"]) if "size" in file else _local_size(file) for file in files]
    if files and not any(sizes) and not offline:
        return _remote_size(files[0].get("url", ""))
    return max(sizes, default=0)


def _local_size(file: Mapping[str, Any]) -> int:
    parts = urlsplit(file.get("url", ""))
    path = unquote(parts.path) if parts.scheme == "file" else file.get("path", "")
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
