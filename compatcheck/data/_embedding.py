"""Rows of the embedding that nobody has trained, near zero beside the others; read from safetensors row by row."""

from __future__ import annotations

import json
import math
import os
import re
import struct
from array import array
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

from compatcheck.files import limits
from compatcheck.files.reading import open_bytes

_NAME = re.compile(r"(^|\.)(embed_tokens|word_embeddings|wte|embed_in|tok_embeddings|wte\.embedding)\.weight$")
_SIZES = {"BF16": 2, "F16": 2, "F32": 4}
_COMPARED = 64
_SMALL = 0.01


class _Table(NamedTuple):
    path: str
    dtype: str
    rows: int
    width: int
    start: int


def untrained(folder: str, ids: Iterable[int]) -> list[int]:
    """Which of these rows have a norm below a hundredth of the median; none where it cannot be told."""
    try:
        table = _table(folder)
        if table is None:
            return []
        with open_bytes(table.path) as stream:
            step = max(table.rows // _COMPARED, 1)
            usual = median(_norm(_row(stream, table, at)) for at in range(0, table.rows, step))
            wanted = [number for number in ids if 0 <= number < table.rows]
            norms = {number: _norm(_row(stream, table, number)) for number in wanted}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error):
        return []
    return sorted(number for number, norm in norms.items() if norm < _SMALL * usual)


def _table(folder: str) -> _Table | None:
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            path = os.path.join(folder, name)
            start, header = _header(path)
            found += [(path, start, tensor) for key, tensor in header.items() if _NAME.search(key)]
    if len(found) != 1:
        return None
    path, start, tensor = found[0]
    (rows, width), dtype = tensor["shape"], tensor["dtype"]
    if dtype not in _SIZES or rows < 2 or not 1 <= width <= limits.EMBEDDING_ROW_BYTES // _SIZES[dtype]:
        return None
    return _Table(path, dtype, rows, width, start + tensor["data_offsets"][0])


def _header(path: str) -> tuple[int, dict[str, Any]]:
    with open_bytes(path) as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > min(limits.HEADER_BYTES, os.path.getsize(path)):
            raise ValueError(path)
        header: dict[str, object] = json.loads(stream.read(length))
    return 8 + length, header


def _row(stream: Any, table: _Table, number: int) -> Sequence[float]:
    size = table.width * _SIZES[table.dtype]
    stream.seek(table.start + number * size)
    raw: bytes = stream.read(size)
    if len(raw) < size:
        raise ValueError(table.path)
    return _decode_floats(raw, table.dtype)


def _decode_floats(raw: bytes, dtype: str) -> Sequence[float]:
    if dtype == "F16":
        return struct.unpack(f"<{len(raw) // 2}e", raw)
    if dtype == "BF16":
        raw = struct.pack(f"<{len(raw) // 2}I", *(half << 16 for half in array("H", raw)))
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def _norm(values: Sequence[float]) -> float:
    return math.sqrt(sum(value * value for value in values))
