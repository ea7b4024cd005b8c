"""Rows of JSON behind their keys, found in the text itself: a large table is read without parsing the rest of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


class KeyedRows(Mapping[str, Any]):
    """A text of lines, each a key, a tab and a value in JSON."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __getitem__(self, key: str) -> Any:
        start = self._start(key)
        if start is None:
            raise KeyError(key)
        end = self._content.find(b"\n", start)
        return json.loads(self._content[start : end if end >= 0 else None])

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._start(key) is not None

    def __iter__(self) -> Iterator[str]:
        for line in self._content.splitlines():
            yield line.partition(b"\t")[0].decode()

    def __len__(self) -> int:
        return len(self._content.splitlines())

    def keys_ending(self, ending: str) -> Iterator[str]:
        """The keys with this ending, in the order of the text."""
        mark = b"%b\t" % ending.encode()
        at = self._content.find(mark)
        while at >= 0:
            start = self._content.rfind(b"\n", 0, at) + 1
            if b"\t" not in self._content[start:at]:
                yield self._content[start : at + len(mark) - 1].decode()
            at = self._content.find(mark, at + 1)

    def _start(self, key: str) -> int | None:
        """Where the value of a key begins."""
        mark = b"%b\t" % key.encode()
        if self._content.startswith(mark):
            return len(mark)
        found = self._content.find(b"\n" + mark)
        return None if found < 0 else found + 1 + len(mark)
