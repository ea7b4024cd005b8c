"""Rows of JSON behind sorted keys, found in the file itself: of a large table only what is asked for is read."""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator, Mapping
from typing import Any


class KeyedRows(Mapping[str, Any]):
    """A text of lines, each a key, a tab and a value in JSON, in the order of the keys' bytes."""

    def __init__(self, content: bytes | mmap.mmap) -> None:
        self._content = content

    @classmethod
    def of_file(cls, path: str) -> KeyedRows:
        """The rows of a file, of which no more is loaded than is looked at. Raises OSError where it cannot be read."""
        with open(path, "rb") as stream:
            stream.seek(0, 2)
            return cls(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if stream.tell() else b"")

    def __getitem__(self, key: str) -> Any:
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
