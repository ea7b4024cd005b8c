"""The GPU architectures torch was compiled for: the string that ``torch.cuda.get_arch_list`` splits.

It stands NUL-terminated among the constants of ``libtorch_python``, beside the function that returns
it (torch/csrc/cuda/Module.cpp). Only the section of constants is read, in chunks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from compatcheck.files import limits
from compatcheck.files.reading import open_bytes

_LIBRARIES = ("libtorch_python.so", "torch_python.dll", "libtorch_python.dylib")
_ONE = rb"(?:sm|compute)_\d{2,3}[af]?"
_FLAGS = re.compile(rb"\0(" + _ONE + rb"(?: " + _ONE + rb")*)\0")
_CHUNK = 1 << 20
_LONGEST = 1024


def compiled_architectures(folder: str) -> tuple[str, ...] | None:
    """Such as ``("sm_80", "sm_90", "compute_90")`` for an installed ``torch`` folder; ``None`` if not stated.

    Where two candidates differ nothing is claimed.
    """
    for name in _LIBRARIES:
        try:
            with open_bytes(os.path.join(folder, "lib", name), buffering=0) as stream:
                found = set(_flags(stream, *_constants(stream)))
        except OSError:
            continue
        return tuple(found.pop().decode().split()) if len(found) == 1 else None
    return None


def _flags(stream: BinaryIO, offset: int, size: int) -> Iterator[bytes]:
    stream.seek(offset)
    kept = b"\0"
    while size > 0:
        chunk = stream.read(min(_CHUNK, size))
        if not chunk:
            return
        size -= len(chunk)
        window = kept + chunk
        if b"\0sm_" in window or b"\0compute_" in window:
            yield from (match[1] for match in _FLAGS.finditer(window))
        kept = window[-_LONGEST:]


def _constants(stream: BinaryIO) -> tuple[int, int]:
    """Offset and size of ``.rodata`` in a 64-bit little-endian ELF file; of the whole file in any other."""
    whole = (0, os.fstat(stream.fileno()).st_size)
    head = stream.read(64)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return whole
    table, width, count, names = _number(head, 40, 8), *(_number(head, at, 2) for at in (58, 60, 62))
    sections = _at(stream, table, width * min(count, limits.LIBRARY_SECTIONS))
    if width < 64 or len(sections) < width * (names + 1):
        return whole
    rows = [sections[at : at + width] for at in range(0, len(sections), width)]
    labels = _at(stream, _number(rows[names], 24, 8), min(_number(rows[names], 32, 8), _CHUNK))
    for row in rows:
        start = _number(row, 0, 4)
        if labels[start : start + 8] == b".rodata\0":
            return _number(row, 24, 8), _number(row, 32, 8)
    return whole


def _at(stream: BinaryIO, offset: int, size: int) -> bytes:
    if offset >= 1 << 62:
        return b""
    stream.seek(offset)
    return stream.read(size)


def _number(raw: bytes, at: int, size: int) -> int:
    return int.from_bytes(raw[at : at + size], "little")
