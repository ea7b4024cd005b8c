"""The records of a data file, one after another in bounded memory: JSON lines or one JSON array, gzip or plain.

Nothing a file holds raises here but that it cannot be opened: a line that is broken, too long, too deep or in another
encoding is a record with a fault.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_bytes, read_some

_CHUNK = 1 << 20
_BROKEN_STREAM = (OSError, EOFError, zlib.error)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


Stream = IO[bytes] | gzip.GzipFile


class Record(NamedTuple):
    """One value and the number of its line, or of its place in the array, from 1; ``fault`` is why it is none.

    ``encoding`` is named where it is not UTF-8.
    """

    number: int
    value: Any = None
    fault: str | None = None
    encoding: str | None = None


def read(path: str) -> Iterator[Record]:
    """Every record of a file. Raises `InputError` where it cannot be opened."""
    if os.path.isdir(path):
        advice = "pass one file of the folder; export a data set saved by datasets with its to_json() first"
        raise InputError("reading", path, "this is a folder", advice)
    if not os.path.isfile(path):
        missing = "there is no such file" if not os.path.lexists(path) else "this is not a regular file"
        raise InputError("reading", path, missing, "pass a JSON or JSON-lines file")
    try:
        with open_bytes(path) as plain:
            zipped = read_some(plain, 2) == b"\x1f\x8b"
            plain.seek(0)
            if zipped:
                with gzip.open(plain) as stream:
                    yield from _records(stream)
            else:
                yield from _records(plain)
    except OSError as error:
        raise InputError("reading", path, error.strerror or str(error), "make it readable") from None


def _records(stream: Stream) -> Iterator[Record]:
    head = _read(stream, _CHUNK)
    if head is None:
        yield Record(1, fault="the compressed data is damaged")
        return
    if head.startswith(b"PAR1"):
        yield Record(1, fault="this is a Parquet file; convert it to JSON lines, for example with datasets' to_json()")
        return
    lines = _Lines(stream, head)
    if _is_array(head):
        yield from _read_array(lines)
        return
    number = 0
    while (line := lines.next()) is not None:
        number += 1
        if line.strip(b"\x00 \t\r\n"):
            yield _parse(number, line, lines.utf16)
    if lines.damaged:
        yield Record(number + 1, fault="the compressed data ends in the middle")


def _read(stream: Stream, count: int) -> bytes | None:
    try:
        return stream.read(count)
    except _BROKEN_STREAM:
        return None


class _Lines:
    """Lines as bytes; one beyond `limits.ROW_BYTES` comes cut, without its rest; UTF-16 is translated."""

    def __init__(self, stream: Stream, head: bytes) -> None:
        self.stream = stream
        self.buffer = head
        self.damaged = False
        self.utf16 = head.startswith(_UTF16)
        self.decoder = codecs.getincrementaldecoder("utf-16")(errors="replace") if self.utf16 else None
        self.buffer = self._translated(head.removeprefix(codecs.BOM_UTF8))

    def next(self) -> bytes | None:
        end, start = self.buffer.find(b"\n"), 0
        while end < 0 and len(self.buffer) <= limits.ROW_BYTES:
            start = len(self.buffer)
            if not self.more():
                line, self.buffer = self.buffer, b""
                return line or None
            end = self.buffer.find(b"\n", start)
        if end < 0:
            line = self.buffer
            self._pass_over()
            return line
        line, self.buffer = self.buffer[:end], self.buffer[end + 1 :]
        return line

    def more(self) -> bool:
        chunk = _read(self.stream, _CHUNK)
        self.damaged |= chunk is None
        self.buffer += self._translated(chunk or b"")
        return bool(chunk)

    def _pass_over(self) -> None:
        self.buffer = b""
        while self.more():
            _, found, rest = self.buffer.partition(b"\n")
            self.buffer = rest
            if found:
                return

    def _translated(self, chunk: bytes) -> bytes:
        return self.decoder.decode(chunk).encode("utf-8", "replace") if self.decoder else chunk


def _is_array(head: bytes) -> bool:
    """Whether the file is one array: it begins with a bracket, and its first line is not a record by itself."""
    text = head.removeprefix(codecs.BOM_UTF8)
    if text.startswith(_UTF16):
        text = text.decode("utf-16", "replace").encode("utf-8", "replace")
    text = text.lstrip()
    if not text.startswith(b"["):
        return False
    first, _, rest = text.partition(b"\n")
    try:
        return not (rest.lstrip().startswith(b"[") and isinstance(json.loads(first), list))
    except (ValueError, RecursionError):
        return True


def _parse(number: int, line: bytes, utf16: bool) -> Record:
    if len(line) > limits.ROW_BYTES:
        return Record(number, fault=f"the line is longer than {limits.ROW_BYTES >> 20} MiB")
    encoding = "UTF-16" if utf16 else None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        text, encoding = line.decode("gb18030", "replace"), "an encoding other than UTF-8"
        if "�" in text:
            return Record(number, fault=f"byte {error.start} is not UTF-8", encoding=encoding)
        encoding = "GBK (GB 18030)"
    try:
        return Record(number, json.loads(text), encoding=encoding)
    except RecursionError:
        return Record(number, fault="the content is nested too deeply", encoding=encoding)
    except json.JSONDecodeError as error:
        return Record(number, fault=_explained(error), encoding=encoding)
    except ValueError as error:
        return Record(number, fault=str(error)[:120], encoding=encoding)


def _explained(error: json.JSONDecodeError) -> str:
    if error.doc.lstrip().startswith("{") and not error.doc[error.pos :].strip():
        return f"column {error.colno}: the object does not end on the line where it starts"
    return f"column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"


def _read_array(lines: _Lines) -> Iterator[Record]:
    """The elements of one array, each parsed as soon as it is whole; what follows a broken one cannot be told."""
    encoding = "UTF-16" if lines.utf16 else None
    decoder, number = json.JSONDecoder(), 1
    text = _Text(lines)
    text.skip("[")
    while text.skip(" \t\r\n,"):
        if text.startswith("]"):
            return
        found = text.element(decoder)
        yield Record(number, *found, encoding=encoding)
        if found[1] is not None:
            return
        number += 1
    yield Record(number, fault="the file ends inside the array", encoding=encoding)


class _Text:
    """The text still to be parsed, filled up as it is needed."""

    def __init__(self, lines: _Lines) -> None:
        self.lines = lines
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.text = ""
        self.at = 0
        self._take()

    def _take(self) -> bool:
        raw, self.lines.buffer = self.lines.buffer, b""
        if not raw and self.lines.more():
            raw, self.lines.buffer = self.lines.buffer, b""
        self.text = self.text[self.at :] + self.decoder.decode(raw, final=not raw)
        self.at = 0
        return bool(raw)

    def skip(self, characters: str) -> bool:
        """Move past these characters; whether anything is left."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in characters:
                self.at += 1
                if characters == "[":
                    return True
            if self.at < len(self.text):
                return True
            if not self._take():
                return False

    def startswith(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def element(self, decoder: json.JSONDecoder) -> tuple[object, str | None]:
        asked = 0
        while True:
            try:
                value, self.at = decoder.raw_decode(self.text, self.at)
                return value, None
            except RecursionError:
                return None, "the content is nested too deeply"
            except ValueError as error:
                if len(self.text) - self.at > limits.ROW_BYTES:
                    return None, f"the element is broken or longer than {limits.ROW_BYTES >> 20} MiB"
                fault = str(error)[:120]
            asked = 2 * asked or 1
            before = len(self.text) - self.at
            for _ in range(asked):
                self._take()
            if len(self.text) - self.at == before:
                return None, f"{fault[:1].lower()}{fault[1:]}"
