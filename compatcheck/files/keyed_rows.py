"""Rows of JSON behind their keys, found in the text itself: a large table is read without parsing the rest of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


class KeyedRows(Mapping[str, Any]):
    """A text of lines, each a key, a tab and a value in JSON."""

    def __init__(self, content: bytes) -> None:
        self._content = b"\n" + content

    def __getitem__(self, key: str) -> Any:
        mark = b"\n%b\t" % key.encode()
        start = self._content.find(mark)
        if start < 0:
            raise KeyError(key)
        start += len(mark)
        return json.loads(self._content[start : self._content.find(b"\n", start)])

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and b"\n%b\t" % key.encode() in self._content

    def __iter__(self) -> Iterator[str]:
        for line in self._content.splitlines()[1:]:
            yield line.partition(b"\t")[0].decode()

    def __len__(self) -> int:
        return self._content.count(b"\n") - 1

    def keys_ending(self, ending: str) -> Iterator[str]:
        """The keys with this ending, in the order of the text."""
        mark = b"%b\t" % ending.encode()
        at = self._content.find(mark)
        while at >= 0:
            start = self._content.rfind(b"\n", 0, at) + 1
            if b"\t" not in self._content[start:at]:
                yield self._content[start : at + len(mark) - 1].decode()
            at = self._content.find(mark, at + 1)
