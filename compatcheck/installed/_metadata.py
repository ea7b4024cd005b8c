"""The header of a distribution's metadata, read only as far as its first blank line."""

from __future__ import annotations

import os

from compatcheck.files import limits

_CHUNK = 16 << 10


def read_header(metadata: str) -> bytes:
    """The header of what a ``.dist-info`` or ``.egg-info`` states, with ``\\n`` line ends.

    Raises `OSError` where there is no metadata to read.
    """
    if metadata.endswith(".dist-info"):
        return _up_to_blank_line(os.path.join(metadata, "METADATA"))
    try:
        return _up_to_blank_line(os.path.join(metadata, "PKG-INFO"))
    except NotADirectoryError:
        return _up_to_blank_line(metadata)


def header_field(header: bytes, name: str) -> str | None:
    """The first value of a field."""
    prefix = name.lower().encode() + b":"
    for line in header.split(b"\n"):
        if line[: len(prefix)].lower() == prefix:
            return text(line[len(prefix) :].strip()) or None
    return None


def text(raw: bytes) -> str:
    """Metadata is UTF-8 by its specification and Latin-1 in some old releases."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _up_to_blank_line(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        header = b""
        while len(header) < limits.METADATA_BYTES:
            chunk = os.read(descriptor, _CHUNK)
            header += chunk.replace(b"\r", b"") if b"\r" in chunk else chunk
            end = header.find(b"\n\n")
            if end >= 0:
                return header[: end + 1]
            if not chunk:
                break
        return header
    finally:
        os.close(descriptor)
