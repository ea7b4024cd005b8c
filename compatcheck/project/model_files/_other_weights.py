"""Weights that are no safetensors: told by their first bytes, listed where they are zip files, and never unpickled."""

from __future__ import annotations

import os
from typing import BinaryIO, NamedTuple

from compatcheck.files import limits
from compatcheck.files.reading import open_bytes
from compatcheck.project.model_files._safetensors import LFS_PROBLEM, HeaderError, is_lfs_pointer

_ZIP64_RECORDS = 56 + 20
"""The bytes of zip64's end record and of its locator, which stand before the usual end record."""
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT = 8
_GGUF_WANTED = {"general.architecture": "architecture", "general.name": "name"}


class Listing(NamedTuple):
    """``kind`` is ``zip``, ``pickle``, ``tar`` or ``gguf``; ``stated`` is what a GGUF header says of the model."""

    kind: str
    tensors: int | None = None
    bytes: int | None = None
    stated: dict[str, str] = {}


def read_listing(path: str) -> Listing:
    """What a ``.bin``, ``.pt``, ``.pth`` or ``.gguf`` file is; raises `HeaderError` and `OSError` as `read_shard`."""
    size = os.path.getsize(path)
    with open_bytes(path) as stream:
        start = stream.read(512)
        if is_lfs_pointer(start):
            raise HeaderError(LFS_PROBLEM)
        if size == 0:
            raise HeaderError("truncated: 0 bytes")
        if start.startswith(b"GGUF"):
            return _gguf(stream, size)
        if start.startswith(b"PK"):
            return _zip(stream, size)
    if start[257:262] == b"ustar":
        return Listing("tar")
    if start[:1] == b"\x80":
        return Listing("pickle")
    raise HeaderError("damaged: not a zip, pickle, tar or GGUF file")


def _zip(stream: BinaryIO, size: int) -> Listing:
    """The tensors are the members of the ``data`` folder that torch.save makes (torch 1.6 and later)."""
    tail = min(size, 1 << 16)
    stream.seek(size - tail)
    end = stream.read(tail)
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or len(end) < at + 22:
        raise HeaderError("truncated: the listing at the end of the zip file is missing")
    directory = int.from_bytes(end[at + 12 : at + 16], "little")
    record = at - _ZIP64_RECORDS
    if record >= 0 and end.startswith(b"PK\x06\x06", record):  # zip64 repeats the listing's size, in eight bytes
        directory = int.from_bytes(end[record + 40 : record + 48], "little")
    if directory > limits.ZIP_LISTING_BYTES:
        raise HeaderError(f"damaged: its zip listing claims {directory} bytes")
    import zipfile

    stream.seek(0)
    try:
        with zipfile.ZipFile(stream) as archive:
            tensors = [each for each in archive.infolist() if "/data/" in each.filename]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise HeaderError(f"damaged: {str(error)[:120]}") from None
    return Listing("zip", len(tensors), sum(each.file_size for each in tensors))


def _gguf(stream: BinaryIO, size: int) -> Listing:
    """Architecture and name stand among the first pairs of the header.

    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    """
    stream.seek(4)
    version = _number(stream, 4)
    if version not in (2, 3):
        return Listing("gguf")
    tensors, pairs = _number(stream, 8), _number(stream, 8)
    if tensors > size or pairs > size:
        raise HeaderError(f"damaged: its header claims {tensors} tensors and {pairs} values")
    stated: dict[str, str] = {}
    for _ in range(min(pairs, limits.GGUF_PAIRS)):
        key, kind = _string(stream), _number(stream, 4)
        if kind == _TEXT:
            value = _string(stream)
            if key in _GGUF_WANTED:
                stated[_GGUF_WANTED[key]] = value[:200]
        elif kind in _WIDTHS:
            _number(stream, _WIDTHS[kind])
        else:
            break
    return Listing("gguf", tensors, stated=stated)


def _number(stream: BinaryIO, width: int) -> int:
    raw = stream.read(width)
    if len(raw) < width:
        raise HeaderError("truncated: its header is incomplete")
    return int.from_bytes(raw, "little")


def _string(stream: BinaryIO) -> str:
    length = _number(stream, 8)
    if length > limits.GGUF_TEXT_BYTES:
        raise HeaderError(f"damaged: its header claims a text of {length} bytes")
    raw = stream.read(length)
    if len(raw) < length:
        raise HeaderError("truncated: its header is incomplete")
    return raw.decode("utf-8", "replace")


def facts_of(name: str, listing: Listing) -> dict[str, object]:
    """The listing as a plain value for reports."""
    return {"path": name, **{key: value for key, value in listing._asdict().items() if value not in (None, {})}}
