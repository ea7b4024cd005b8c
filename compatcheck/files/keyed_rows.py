"""Rows of JSON behind sorted keys, found in the file itself: of a large table only what is asked for is read."""

from __future__ import annotations

import json
import mmap
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

PACKED = ".packed"
"""Ending of a file whose rows are compressed."""
_BLOCK_SIZE = 2**14
_BLOCKS_IN_MEMORY = 64
_MOST_ROWS = 512
"""Rows that are kept in memory, because a script asks for the same ones again and again."""


class KeyedRows(Mapping[str, Any]):
    """A text of lines, each a key, a tab and a value in JSON, in the order of the keys' bytes."""

    def __init__(self, content: bytes | mmap.mmap) -> None:
        self._content = content
        self._found: dict[str, Any] = {}

    @classmethod
    def of_file(cls, path: str) -> KeyedRows:
        """The rows of a file, of which no more is loaded than is looked at. Raises OSError where it cannot be read."""
        with open(path, "rb") as stream:
            stream.seek(0, 2)
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if stream.tell() else b""
        return PackedRows(content) if path.endswith(PACKED) else KeyedRows(content)

    def __getitem__(self, key: str) -> Any:
        if key not in self._found:
            if len(self._found) == _MOST_ROWS:
                self._found.clear()
            self._found[key] = self._read(key)
        return self._found[key]

    def _read(self, key: str) -> Any:
        mark = key.encode()
        low, high = 0, len(self._content)
        while low < high:
            start = self._content.rfind(b"\n", low, (low + high) // 2) + 1 or low
            tab, end = self._content.find(b"\t", start), self._end(start)
            found = self._content[start:tab]
            if found == mark:
                return json.loads(self._content[tab + 1 : end])
            low, high = (end + 1, high) if found < mark else (low, start)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        start = 0
        while start < len(self._content):
            yield self._content[start : self._content.find(b"\t", start)].decode()
            start = self._end(start) + 1

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keys_ending(self, ending: str) -> Iterator[str]:
        """The keys with this ending, in the order of the text."""
        mark = b"%b\t" % ending.encode()
        at = self._content.find(mark)
        while at >= 0:
            start = self._content.rfind(b"\n", 0, at) + 1
            if b"\t" not in self._content[start:at]:
                yield self._content[start : at + len(mark) - 1].decode()
            at = self._content.find(mark, at + 1)

    def keys_holding(self, word: str) -> Iterator[str]:
        """The keys whose row holds this word anywhere, in the order of the text."""
        mark = word.encode()
        at = self._content.find(mark)
        while at >= 0:
            start, end = self._content.rfind(b"\n", 0, at) + 1, self._end(at)
            tab = self._content.find(b"\t", start)
            if re.search(rb"\b%b\b" % re.escape(mark), self._content[tab:end]):
                yield self._content[start:tab].decode()
            at = self._content.find(mark, end)

    def _end(self, start: int) -> int:
        end = self._content.find(b"\n", start)
        return len(self._content) if end < 0 else end


class PackedRows(KeyedRows):
    """Rows in compressed blocks: a lookup unpacks one block, a search by part of a row unpacks them all once.

    The first line is a JSON list of each block's first key and its length in bytes.
    """

    def __init__(self, packed: bytes | mmap.mmap) -> None:
        self._packed = packed
        self._found: dict[str, Any] = {}
        head = packed.find(b"\n")
        blocks = json.loads(packed[:head]) if head > 0 else []
        self._firsts = [first.encode() for first, _ in blocks]
        self._starts = list(accumulate((length for _, length in blocks), initial=head + 1))
        self._block = lru_cache(_BLOCKS_IN_MEMORY)(self._unpack)

    @cached_property
    def _content(self) -> bytes:  # type: ignore[override]
        return b"".join(map(self._unpack, range(len(self._firsts))))

    def _read(self, key: str) -> Any:
        number = bisect_right(self._firsts, key.encode()) - 1
        if number < 0:
            raise KeyError(key)
        return KeyedRows(self._block(number))._read(key)

    def _unpack(self, number: int) -> bytes:
        return zlib.decompress(self._packed[self._starts[number] : self._starts[number + 1]])


def pack(content: bytes) -> bytes:
    """The same rows as `PackedRows` reads them."""
    blocks: list[bytes] = []
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + _BLOCK_SIZE) + 1 or len(content)
        blocks.append(content[start:end])
        start = end
    packed = [zlib.compress(block, 9) for block in blocks]
    head = [(block.partition(b"\t")[0].decode(), len(each)) for block, each in zip(blocks, packed)]
    return b"".join([json.dumps(head).encode(), b"\n", *packed])
